import {
  type Reading,
  SETTING_NAMES,
  SETTINGS,
  type SettingName,
  type Settings,
  type SettingTexts,
  settingFault,
} from "./settings.ts";
import { readTlsFiles, type TlsFiles } from "./tls-files.ts";

/** All settings of a service, and the certificate that they name. */
export type Config = Settings & {
  /** Null: plain HTTP. */
  readonly tls: TlsFiles | null;
};

/**
 * Reads the settings that a command uses, and only these: a bad PORT does not stop `token list`.
 *
 * @returns the values, or all faults at once: each a sentence that names the setting and what it must be
 */
export function readSettings<Name extends SettingName>(
  texts: SettingTexts,
  names: readonly Name[],
): Reading<Pick<Settings, Name>> {
  const faults: string[] = [];
  const values = names.flatMap((name) => {
    const text = texts[name] ?? SETTINGS[name].fallback;
    const reading = SETTINGS[name].read(text);
    if (reading.ok) return [[name, reading.value]];
    faults.push(...reading.faults.map((fault) => settingFault(name, text, fault)));
    return [];
  });
  if (faults.length > 0) return { ok: false, faults };
  return { ok: true, value: Object.fromEntries(values) as Pick<Settings, Name> };
}

/** Reads every setting, and what must fit each other: the two ports, and the TLS files. @returns all faults at once */
export function readConfig(texts: SettingTexts): Reading<Config> {
  const settings = readSettings(texts, SETTING_NAMES);
  const { tlsCertFile = "", tlsKeyFile = "" } = texts;
  const tls = readTlsFiles(tlsCertFile, tlsKeyFile);
  const portFault = samePortFault(texts);
  if (settings.ok && portFault === null && tls.ok)
    return { ok: true, value: { ...settings.value, tls: tls.files } };
  const tlsFaults = tls.ok ? [] : tls.faults;
  return {
    ok: false,
    faults: [
      ...(settings.ok ? [] : settings.faults),
      ...(portFault === null ? [] : [portFault]),
      ...tlsFaults.map(({ name, what }) => settingFault(name, texts[name] ?? "", what)),
    ],
  };
}

/** Both listeners are on one HOST. Each may pick a free port. */
function samePortFault(texts: SettingTexts): string | null {
  const ports = readSettings(texts, ["port", "adminPort"]);
  if (!ports.ok || ports.value.port === 0 || ports.value.port !== ports.value.adminPort) return null;
  return settingFault("adminPort", texts.adminPort ?? "", "it must be another port than PORT");
}
