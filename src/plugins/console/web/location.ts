import { computed, signal } from '@preact/signals';
import { newest } from './live.ts';

/** The address of the page: what two people need to see the same thing. */
interface Place {
  /** E.g. `/actors/reconciler.leg/lan`. */
  readonly path: string;
  readonly params: URLSearchParams;
}

/** Pages stand behind the `#` of an exported page: a file has one address. */
let isFile = false;

function read(): Place {
  const shown = isFile ? new URL(location.hash.slice(1) || '/', 'https://page.invalid') : location;
  return { path: decodeURIComponent(shown.pathname), params: new URLSearchParams(shown.search) };
}

const place = signal(read());

/** Takes the page's place from behind the `#`, and keeps it there. */
export function routeInFile(): void {
  isFile = true;
  place.value = read();
}

/** The path of the page that is shown. */
export const path = computed(() => place.value.path);
/** What is selected on it. */
export const params = computed(() => place.value.params);

/** The moment that every page shows: the seq of a record, undefined for now. */
export const at = computed(() => numberOf('at'));

/** The other moment, when two are compared. */
export const mark = computed(() => numberOf('mark'));

/** The part of the log that is zoomed, by its records; a missing end is that of the log. */
export const zoom = computed(() => ({ from: numberOf('from'), to: numberOf('to') }));

function numberOf(name: string): number | undefined {
  const seq = Number(place.value.params.get(name) ?? Number.NaN);
  return Number.isSafeInteger(seq) && seq > 0 ? seq : undefined;
}

/**
 * The address of a page. The moment and the zoom stay as they are unless they are given.
 *
 * @param to path, e.g. `/stories`
 * @param changes parameters; undefined takes one out
 */
export function address(
  to: string,
  changes: Readonly<Record<string, string | number | undefined>> = {},
): string {
  const next = new URLSearchParams();
  for (const kept of ['at', 'mark', 'from', 'to']) {
    const value = place.value.params.get(kept);
    if (value !== null) next.set(kept, value);
  }
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === '') next.delete(name);
    else next.set(name, String(value));
  }
  const query = next.toString();
  const encoded = `${isFile ? '#' : ''}${to.split('/').map(encodeURIComponent).join('/')}`;
  return query === '' ? encoded : `${encoded}?${query}`;
}

/** Goes to an address of this console. @param replace leaves no step in the history, as for a moment that moves on */
export function go(to: string, replace = false): void {
  if (isFile && replace) location.replace(to);
  else if (isFile) location.assign(to);
  else if (replace) history.replaceState(null, '', to);
  else history.pushState(null, '', to);
  place.value = read();
}

/** Changes parameters of the page that is shown. */
export function change(changes: Readonly<Record<string, string | number | undefined>>, replace = true): void {
  const all = Object.fromEntries(place.value.params);
  go(address(place.value.path, { ...all, ...changes }), replace);
}

/** Shows every page as it was then. @param seq of a record; undefined for now */
export function travel(seq: number | undefined): void {
  change({ at: seq });
}

/** Follows links within the console without loading it anew, and the back button. */
export function listenForNavigation(): void {
  if (isFile) {
    // Links lead to another part of the same document, which the browser does by itself.
    addEventListener('hashchange', () => {
      if (location.hash.startsWith('#/')) place.value = read();
    });
    // A link into the page would take the place of the page's place.
    document.addEventListener('click', (event) => {
      const link = event.target instanceof Element ? event.target.closest('a[href^="#"]') : null;
      const into = link?.getAttribute('href')?.slice(1) ?? '';
      if (into === '' || into.startsWith('/')) return;
      event.preventDefault();
      document.getElementById(into)?.focus();
    });
    return;
  }
  addEventListener('popstate', () => {
    place.value = read();
  });
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const link = event.target instanceof Element ? event.target.closest('a[href]') : null;
    if (!(link instanceof HTMLAnchorElement) || link.origin !== location.origin) return;
    if (link.target !== '' || link.hasAttribute('download') || link.pathname.startsWith('/api/')) return;
    event.preventDefault();
    go(link.pathname + link.search);
  });
}

/** The address of what is shown, with the moment named also where it is now: another person sees the same. */
export function here(): string {
  const all = Object.fromEntries(place.value.params);
  return address(place.value.path, { ...all, at: at.value ?? (newest.value || undefined) });
}
