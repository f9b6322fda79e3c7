import {
  type Reading,
  readSetting,
  SETTING_NAMES,
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
  const readings = names.map((name) => ({ name, reading: readSetting(name, texts) }));
  const faults = readings.flatMap(({ reading }) => (reading.ok ? [] : reading.faults));
  if (faults.length > 0) return { ok: false, faults };
  const values = readings.flatMap(({ name, reading }) => (reading.ok ? [[name, reading.value]] : []));
  return { ok: true, value: Object.fromEntries(values) as Pick<Settings, Name> };
}

/** Reads every setting, and the TLS files, which must fit each other. @returns all faults at once */
export function readConfig(texts: SettingTexts): Reading<Config> {
  const settings = readSettings(texts, SETTING_NAMES);
  const { tlsCertFile = "", tlsKeyFile = "" } = texts;
  const tls = readTlsFiles(tlsCertFile, tlsKeyFile);
  const tlsFaults = tls.ok
    ? []
    : tls.faults.map(({ name, what }) => settingFault(name, texts[name] ?? "", what));
  if (settings.ok && tls.ok) return { ok: true, value: { ...settings.value, tls: tls.files } };
  return { ok: false, faults: [...(settings.ok ? [] : settings.faults), ...tlsFaults] };
}
