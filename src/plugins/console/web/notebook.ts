import { effect, signal } from '@preact/signals';
import { at, here, params, path } from './location.ts';
import { readStored, store } from './stored.ts';

/** A moment that was looked at. */
export interface Visited {
  /** Of this console, with its moment and what was chosen. */
  readonly address: string;
  readonly title: string;
  /** When it was looked at, epoch milliseconds. */
  readonly seen: number;
}

const NAME = 'holdfast.visited';
const MOST = 60;
/** What is passed on the way to something else is not kept: milliseconds. */
const STAY_MS = 600;

/** The path that an investigation took, newest first; it ends with the window. */
export const visited = signal<readonly Visited[]>(readStored<readonly Visited[]>('sessionStorage', NAME, []));

const NAMES: Readonly<Record<string, string>> = {
  now: 'Now',
  stories: 'Stories',
  actors: 'Actors',
  compare: 'Compare',
  'what-if': 'What if',
};

/** What a page shows, in some words: also the title of the window. */
function pageTitle(): string {
  const [, first = '', ...rest] = path.value.split('/');
  const name = rest.join('/');
  const what =
    name === '' || first === 'area'
      ? (NAMES[first || 'now'] ?? name)
      : first === 'records'
        ? `Record ${at.value ?? name}`
        : first === 'stories'
          ? `Story ${name.slice(-8)}`
          : name;
  const value = params.value.get('value');
  const then = at.value === undefined || first === 'records' ? '' : `, as of record ${at.value}`;
  return `${what}${value ? `, ${value}` : ''}${then}`;
}

/** Keeps each moment that somebody stays at, and names the window after it. */
export function keepNotebook(): void {
  let waits: ReturnType<typeof setTimeout> | undefined;
  effect(() => {
    const title = pageTitle();
    document.title = `${title} · Holdfast`;
    clearTimeout(waits);
    waits = setTimeout(() => {
      const one = { address: here(), title, seen: Date.now() };
      const others = visited.value.filter((each) => each.title !== title || each.address !== one.address);
      visited.value = [one, ...others].slice(0, MOST);
      store('sessionStorage', NAME, visited.value);
    }, STAY_MS);
  });
}
