import type { PageSection, PageStatus } from '../../../core/contracts/console.ts';

/** The worst first. */
export const WORST_FIRST: readonly PageStatus[] = ['failing', 'degraded', 'unknown', 'ok'];

/** Names that are listed; the page has all of them. */
const LISTED = 3;

/** How everything on a page stands, as one line. */
export interface Standing {
  readonly status: PageStatus;
  readonly text: string;
}

/**
 * Sums up the facts and rows of a page that say how something is.
 *
 * @returns the worst of them, e.g. `2 ok, 1 failing: repo_wiki`; undefined of a page that says so of nothing
 */
export function standingOf(sections: readonly PageSection[]): Standing | undefined {
  const found = Map.groupBy(sections.flatMap(statusesOf), ({ status }) => status);
  const [worst] = WORST_FIRST.filter((status) => found.has(status));
  if (worst === undefined) return undefined;
  const counts = WORST_FIRST.toReversed().flatMap((status) => {
    const count = found.get(status)?.length;
    return count === undefined ? [] : [`${count} ${status}`];
  });
  const names = worst === 'ok' ? [] : (found.get(worst) ?? []).map(({ name }) => name).filter(Boolean);
  const more = names.length > LISTED ? ` and ${names.length - LISTED} more` : '';
  const listed = names.length === 0 ? '' : `: ${names.slice(0, LISTED).join(', ')}${more}`;
  return { status: worst, text: `${counts.join(', ')}${listed}` };
}

const HISTORY: readonly (string | undefined)[] = ['time', 'instant'];

/**
 * What says how it is, by the name that a person knows it by: the label of a fact, the first cell of a row. A table whose first
 * column is a time is a history.
 */
function statusesOf(section: PageSection): { status: PageStatus; name: string }[] {
  switch (section.kind) {
    case 'facts':
      return section.facts.flatMap(({ status, label }) => (status ? [{ status, name: label }] : []));
    case 'table': {
      const [first] = section.columns;
      if (HISTORY.includes(first?.format)) return [];
      return section.rows.flatMap(({ status, cells }) =>
        status ? [{ status, name: first ? String(cells[first.name] ?? '') : '' }] : [],
      );
    }
    default:
      return [];
  }
}
