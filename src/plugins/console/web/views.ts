import { signal } from '@preact/signals';
import { address, go, params, path } from './location.ts';
import { readStored, store } from './stored.ts';

/** A list with its filters, by the name that somebody gave it. */
export interface View {
  readonly name: string;
  readonly path: string;
  readonly filters: Readonly<Record<string, string>>;
}

const NAME = 'holdfast.views';
/** A view is a question and no moment: it can be asked at any. */
const MOMENTS = new Set(['at', 'mark', 'top', 'from', 'to']);

/** The views that are kept in this browser. */
export const views = signal<readonly View[]>(readStored<readonly View[]>('localStorage', NAME, []));

function keep(changed: readonly View[]): void {
  views.value = changed.toSorted((a, b) => a.name.localeCompare(b.name));
  store('localStorage', NAME, views.value);
}

/** Keeps the filters of the page that is shown; a view of that name is replaced. */
export function saveView(name: string): void {
  const filters = Object.fromEntries([...params.value].filter(([param]) => !MOMENTS.has(param)));
  keep([...views.value.filter((one) => one.name !== name), { name, path: path.value, filters }]);
}

export function removeView(name: string): void {
  keep(views.value.filter((one) => one.name !== name));
}

export function openView({ path: to, filters }: View): void {
  go(address(to, filters));
}
