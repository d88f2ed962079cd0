// The report at the end of a run.

export interface Result {
  readonly area: string;
  readonly kind: 'written' | 'automatic';
  readonly breaks: string;
  /** `stale`: could not be tried; `equivalent`: no test can notice it. */
  readonly state: 'killed' | 'survived' | 'timed out' | 'stale' | 'equivalent';
  /** The first test that failed, what is wrong, or why no test can notice it. */
  readonly why: string;
  readonly tookMs: number;
}

/** What has a share in the percentage. */
export const isTried = ({ state }: Result): boolean => state !== 'stale' && state !== 'equivalent';

/** E.g. `87 %`; rounded down, so that a share below the least never looks like enough. */
export function shareNoticed(results: readonly Result[]): string {
  const tried = results.filter(isTried);
  const killed = tried.filter(({ state }) => state === 'killed').length;
  return tried.length === 0 ? '–' : `${Math.floor((100 * killed) / tried.length)} %`;
}

function row(name: string, results: readonly Result[]): string {
  const count = (state: Result['state'], kind?: Result['kind']): number =>
    results.filter((result) => result.state === state && (kind === undefined || result.kind === kind)).length;
  const tried = (kind: Result['kind']): number =>
    results.filter((result) => result.kind === kind && isTried(result)).length;
  const cells = [
    `${count('killed', 'written')}/${tried('written')}`,
    `${count('killed', 'automatic')}/${tried('automatic')}`,
    String(count('survived')),
    String(count('timed out')),
    String(count('equivalent')),
    String(count('stale')),
    shareNoticed(results),
  ];
  return `${name.padEnd(13)}${cells.map((cell) => cell.padStart(11)).join('')}`;
}

/**
 * Prints a row for each area, and every change that was not noticed.
 * @returns whether enough was noticed in each area and nothing was stale
 */
export function printSummary(results: readonly Result[], enoughPercent: number): boolean {
  const heads = ['written', 'by rule', 'survived', 'timed out', 'equivalent', 'stale', 'noticed'];
  console.log(`\n${'area'.padEnd(13)}${heads.map((head) => head.padStart(11)).join('')}`);
  const areas = Map.groupBy(results, ({ area }) => area);
  for (const [area, these] of areas) console.log(row(area, these));
  console.log(row('all', results));
  for (const state of ['survived', 'timed out', 'equivalent', 'stale'] as const) {
    const these = results.filter((result) => result.state === state);
    if (these.length > 0) console.log(`\n${state}:`);
    for (const { area, breaks, why } of these) console.log(`  ${area}: ${breaks}${why && `\n    ${why}`}`);
  }
  const isEnough = (these: readonly Result[]): boolean => {
    const tried = these.filter(isTried);
    return tried.filter(({ state }) => state === 'killed').length * 100 >= enoughPercent * tried.length;
  };
  return results.every(({ state }) => state !== 'stale') && [...areas.values()].every(isEnough);
}
