const UNITS: Readonly<Record<string, number>> = {
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  KIB: 2 ** 10,
  MIB: 2 ** 20,
  GIB: 2 ** 30,
};

/** @returns bytes of a text such as `500MB`, `2GB` or `1GiB`; undefined when it is none */
export function parseSize(text: string): number | undefined {
  const [, amount, unit = ''] = /^(\d{1,9})([KMG]i?B)$/i.exec(text) ?? [];
  return amount === undefined ? undefined : Number(amount) * (UNITS[unit.toUpperCase()] ?? 0);
}

const STEPS = ['B', 'KB', 'MB', 'GB', 'TB'];

/** @returns bytes for people, e.g. `512 B`, `1.5 MB` or `120 GB` */
export function sizeText(bytes: number): string {
  let value = bytes;
  let step = 0;
  for (; value >= 1_000 && step < STEPS.length - 1; step += 1) value /= 1_000;
  return `${step === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${STEPS[step]}`;
}
