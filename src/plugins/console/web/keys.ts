import { signal } from '@preact/signals';

/** Something that a key does, listed by `?` and by the palette. */
export interface Shortcut {
  /** As `KeyboardEvent.key` says it, with `Ctrl+` before it; several in turn with a space between, e.g. `g g`. */
  readonly keys: string;
  readonly what: string;
  readonly run: () => void;
}

/** What can be done now: those of the page come after those of the console. */
export const shortcuts = signal<readonly Shortcut[]>([]);

/** How long a second key may take, milliseconds. */
const SEQUENCE_MS = 900;

/** Adds shortcuts. @returns takes them away */
export function addShortcuts(added: readonly Shortcut[]): () => void {
  shortcuts.value = [...shortcuts.value, ...added];
  return () => {
    shortcuts.value = shortcuts.value.filter((one) => !added.includes(one));
  };
}

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && target.matches('input, select, textarea, [contenteditable]');

/** Listens for keys. While somebody types into a field, only keys with Ctrl count. */
export function listenForKeys(): void {
  let before = '';
  let beforeAt = 0;
  document.addEventListener('keydown', (event) => {
    if (event.altKey || event.metaKey) return;
    if (isTyping(event.target) && !event.ctrlKey && event.key !== 'Escape') return;
    if (document.querySelector('dialog[open]') && !event.ctrlKey) return;
    const key = event.ctrlKey ? `Ctrl+${event.key.toLowerCase()}` : event.key;
    const now = performance.now();
    const both = now - beforeAt < SEQUENCE_MS ? `${before} ${key}` : '';
    const find = (keys: string) => shortcuts.value.findLast((one) => one.keys === keys);
    const found = find(both) ?? find(key);
    before = key;
    beforeAt = now;
    if (!found) return;
    event.preventDefault();
    before = '';
    found.run();
  });
}
