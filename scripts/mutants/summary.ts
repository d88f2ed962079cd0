// The report at the end of a run.

export interface Result {
  readonly area: string;
  readonly kind: 'written' | 'automatic';
  readonly breaks: string;
  /** `stale`: could not be tried. */
  readonly state: 'killed' | 'survived' | 'timed out' | 'stale';
  /** The first test that failed, or what is wrong. */
  readonly why: string;
  readonly tookMs: number;
}

const percentOf = (killed: number, tried: number): string =>
  tried === 0 ? '–' : `${((100 * killed) / tried).toFixed(0)} %`;

function row(name: string, results: readonly Result[]): string {
  const count = (state: Result['state'], kind?: Result['kind']): number =>
    results.filter((result) => result.state === state && (kind === undefined || result.kind === kind)).length;
  const tried = (kind: Result['kind']): number =>
    results.filter((result) => result.kind === kind && result.state !== 'stale').length;
  const all = tried('written') + tried('automatic');
  const cells = [
    `${count('killed', 'written')}/${tried('written')}`,
    `${count('killed', 'automatic')}/${tried('automatic')}`,
    String(count('survived')),
    String(count('timed out')),
    String(count('stale')),
    percentOf(count('killed'), all),
  ];
  return `${name.padEnd(13)}${cells.map((cell) => cell.padStart(11)).join('')}`;
}

/**
 * Prints a row for each area, and every change that was not noticed.
 * @returns whether enough was noticed and nothing was stale
 */
export function printSummary(results: readonly Result[], enoughPercent: number): boolean {
  const heads = ['written', 'by rule', 'survived', 'timed out', 'stale', 'noticed'];
  console.log(`\n${'area'.padEnd(13)}${heads.map((head) => head.padStart(11)).join('')}`);
  for (const area of new Set(results.map((result) => result.area))) {
    console.log(
      row(
        area,
        results.filter((result) => result.area === area),
      ),
    );
  }
  console.log(row('all', results));
  for (const state of ['survived', 'timed out', 'stale'] as const) {
    const these = results.filter((result) => result.state === state);
    if (these.length > 0) console.log(`\n${state}:`);
    for (const { area, breaks, why } of these) console.log(`  ${area}: ${breaks}${why && `\n    ${why}`}`);
  }
  const tried = results.filter(({ state }) => state !== 'stale');
  const killed = tried.filter(({ state }) => state === 'killed');
  return tried.length === results.length && killed.length * 100 >= enoughPercent * tried.length;
}
