/** The style of the HTML page: no font, image or script from elsewhere; light and dark, wide and narrow, and paper. */
export const STYLE = `
:root{color-scheme:light dark;--bg:#f6f5f1;--card:#fffefb;--ink:#1d1f24;--soft:#5d6270;--line:#dfdcd3;--code:#f0eee7;
--good:#1d7a4c;--bad:#b3261e;--warn:#96620a;--mute:#545b69;--kit:#7a3fb0;--accent:#2b5aa8;
--good-bg:#e3f2e9;--bad-bg:#fbe6e3;--warn-bg:#faeeD6;--mute-bg:#ecebe6;--kit-bg:#f0e6f8}
@media (prefers-color-scheme:dark){:root{--bg:#14161b;--card:#1c1f26;--ink:#e8e6e0;--soft:#a3a8b4;--line:#323743;--code:#252932;
--good:#6fcf9b;--bad:#ff8f85;--warn:#e8b55a;--mute:#a3a8b4;--kit:#cfa3f5;--accent:#8db4f4;
--good-bg:#16352a;--bad-bg:#45211f;--warn-bg:#3d3018;--mute-bg:#2b2f38;--kit-bg:#36274a}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--bg);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",sans-serif}
main,header.cover>div,nav>div{max-width:74rem;margin:0 auto;padding:0 1.25rem}
a{color:var(--accent)}
code,pre,.mono{font:0.86em/1.5 ui-monospace,SFMono-Regular,Menlo,"DejaVu Sans Mono",monospace}
code{background:var(--code);border-radius:.25em;padding:.1em .35em;overflow-wrap:anywhere}
pre{background:var(--code);border-radius:.5rem;padding:.75rem 1rem;margin:.4rem 0;overflow-x:auto;white-space:pre-wrap;overflow-wrap:anywhere}
pre code{background:none;padding:0}
header.cover{border-top:.5rem solid var(--tone);background:var(--card);border-bottom:1px solid var(--line);padding:2.2rem 0 1.6rem}
.cover.good{--tone:var(--good)}.cover.bad{--tone:var(--bad)}.cover.warn{--tone:var(--warn)}.cover.kit{--tone:var(--kit)}
.eyebrow{color:var(--soft);font-size:.82rem;letter-spacing:.08em;text-transform:uppercase;margin:0}
h1{font-size:clamp(1.6rem,4.5vw,2.6rem);line-height:1.15;margin:.35rem 0 .5rem;color:var(--tone);letter-spacing:-.015em}
.headline,.reason,.title{overflow-wrap:anywhere}.headline{font-size:1.12rem;margin:0 0 1rem;max-width:60ch}
.caveat{color:var(--warn);font-weight:600;margin:0 0 1rem}
.facts{display:flex;flex-wrap:wrap;gap:.35rem 1.6rem;margin:1rem 0 0;padding:0;list-style:none;color:var(--soft);font-size:.9rem}
.facts b{color:var(--ink);font-weight:600}
.more{margin-top:.9rem}.more>summary{cursor:pointer;color:var(--accent)}
.bar{display:flex;height:.8rem;border-radius:.4rem;overflow:hidden;gap:2px;background:var(--line);margin:.2rem 0 .7rem}
.bar i{display:block;min-width:3px}
.keys{display:flex;flex-wrap:wrap;gap:.3rem 1.1rem;font-size:.9rem;margin:0;padding:0;list-style:none}
.dot{display:inline-block;width:.7em;height:.7em;border-radius:50%;margin-right:.4em}
.t-good{background:var(--good)}.t-bad{background:var(--bad)}.t-warn{background:var(--warn)}.t-mute{background:var(--mute)}.t-kit{background:var(--kit)}
nav{background:var(--card);border-bottom:1px solid var(--line);position:sticky;top:0;z-index:2}
nav>div{display:flex;flex-wrap:wrap;gap:.1rem 1.2rem;padding-top:.55rem;padding-bottom:.55rem;font-size:.92rem}
nav a{text-decoration:none}
section{margin:2.2rem 0}[id]{scroll-margin-top:5rem}:target{outline:2px solid var(--accent);outline-offset:.25rem;border-radius:.2rem}
.spec{padding:.4rem 1.1rem 1.1rem}.spec h3,.spec h4,.spec h5{margin:1.2rem 0 .4rem}.spec p{margin:.35rem 0;max-width:90ch}.spec .item{padding-left:1.6em;text-indent:-1.6em}.spec .item code{text-indent:0}.spec table{margin:.5rem 0}.spec td:first-child{overflow-wrap:normal}.one{white-space:nowrap}
h2{font-size:1.35rem;margin:0 0 .8rem;letter-spacing:-.01em}
h2 small{color:var(--soft);font-weight:400;font-size:.85em;margin-left:.4em}
.card{background:var(--card);border:1px solid var(--line);border-radius:.7rem;margin:0 0 1rem;overflow:hidden}
.card>summary,.card>.head{padding:.85rem 1.1rem;cursor:pointer;list-style:none;display:grid;grid-template-columns:auto 1fr;gap:.2rem .9rem;align-items:baseline;border-left:.3rem solid var(--tone)}
.card>summary::-webkit-details-marker{display:none}
.card>summary::after{content:"show";grid-column:2;color:var(--accent);font-size:.82rem}
.card[open]>summary::after{content:"hide"}
.card.good{--tone:var(--good)}.card.bad{--tone:var(--bad)}.card.warn{--tone:var(--warn)}.card.kit{--tone:var(--kit)}.card.mute{--tone:var(--mute)}
.card .id{font-weight:700;color:var(--tone)}
.card .title{font-weight:600}
.card .reason{grid-column:2;color:var(--soft)}
.card .in{padding:.2rem 1.1rem 1.1rem;border-left:.3rem solid var(--tone)}
.probe{border-top:1px solid var(--line);margin-top:.9rem;padding-top:.7rem}
dl.say{display:grid;grid-template-columns:9rem 1fr;gap:.35rem 1rem;margin:.5rem 0}
dl.say dt{color:var(--soft);font-size:.88rem}
dl.say dd{margin:0;min-width:0;overflow-wrap:anywhere}
.chip{display:inline-block;border-radius:1em;padding:.05em .65em;font-size:.8rem;font-weight:600;white-space:nowrap}
.c-good{background:var(--good-bg);color:var(--good)}.c-bad{background:var(--bad-bg);color:var(--bad)}.c-warn{background:var(--warn-bg);color:var(--warn)}.c-mute{background:var(--mute-bg);color:var(--mute)}.c-kit{background:var(--kit-bg);color:var(--kit)}
.yes{color:var(--good)}.no{color:var(--bad);font-weight:600}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.93rem}
th{text-align:left;color:var(--soft);font-weight:600;font-size:.82rem;padding:.45rem .8rem;border-bottom:1px solid var(--line)}
td{padding:.42rem .8rem;border-bottom:1px solid var(--line);vertical-align:top;overflow-wrap:anywhere}
tr:last-child td{border-bottom:0}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap;overflow-wrap:normal}
td.k,th.k{white-space:nowrap;overflow-wrap:normal;width:1%;min-width:6rem}td.k .chip{min-width:6.5em;text-align:center}
h3{font-size:1rem;margin:1.3rem 0 .4rem}
h3 small{color:var(--soft);font-weight:400}
svg.race{display:block;width:100%;min-width:34rem;height:auto;font:11px ui-monospace,SFMono-Regular,Menlo,"DejaVu Sans Mono",monospace}
svg.race text{fill:var(--ink)}svg.race .soft{fill:var(--soft)}
svg.race .grid{stroke:var(--line)}
svg.race .won{fill:var(--good)}svg.race .lost{fill:var(--mute)}svg.race .odd{fill:var(--bad)}svg.race .open{fill:var(--warn)}
.legend{color:var(--soft);font-size:.85rem;margin:.2rem 0 0}
.empty{color:var(--soft)}
footer{color:var(--soft);font-size:.85rem;padding:1rem 0 3rem}
@media (max-width:44rem){nav{position:static}[id]{scroll-margin-top:.5rem}dl.say{grid-template-columns:1fr;gap:0 1rem}dl.say dt{margin-top:.45rem}
.card>summary,.card>.head{grid-template-columns:1fr}.card .reason,.card>summary::after{grid-column:1}
table.stack thead{display:none}table.stack td{display:block;border:0;padding:.1rem .9rem}table.stack tr{display:block;border-bottom:1px solid var(--line);padding:.5rem 0}
table.stack tr:last-child{border:0}table.stack td.n{text-align:left}}
@media print{nav{display:none}.card,.scroll{break-inside:avoid}body{background:none}}
`;
