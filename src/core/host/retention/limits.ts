import { join } from 'node:path';

const AGES_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const SIZES: Readonly<Record<string, number>> = { KB: 1_000, MB: 1_000_000, GB: 1_000_000_000 };

/** @returns milliseconds of a text such as `30d`, `12h`; undefined when it is none */
export function parseAge(text: string): number | undefined {
  const [, amount, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  return amount === undefined ? undefined : Number(amount) * (AGES_MS[unit] ?? 0);
}

/** @returns bytes of a text such as `500MB`, `2GB`; undefined when it is none */
export function parseSize(text: string): number | undefined {
  const [, amount, unit = ''] = /^(\d{1,9})(KB|MB|GB)$/i.exec(text) ?? [];
  return amount === undefined ? undefined : Number(amount) * (SIZES[unit.toUpperCase()] ?? 0);
}

/** Where archives go unless somebody says otherwise. */
export function archiveFolder(dataDir: string): string {
  return join(dataDir, 'archive');
}
