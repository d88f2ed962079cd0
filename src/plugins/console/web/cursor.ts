import { computed, signal } from '@preact/signals';
import { newest } from './live.ts';
import { at, path } from './location.ts';

/** The record that a page is about while it shows now: the last of an actor, the chosen one of a story. */
export const subject = signal<{ readonly path: string; readonly seq: number } | undefined>(undefined);

/** The one record that keys act on, and that every list, chart and state follows. */
export const cursor = computed(
  () => at.value ?? (subject.value?.path === path.value ? subject.value.seq : newest.value),
);

/** What a key did where nothing else shows it; also read aloud. */
export const notice = signal('');

const SHOWN_MS = 6_000;
let ends: ReturnType<typeof setTimeout> | undefined;

/** Says something for a while. */
export function say(text: string): void {
  notice.value = text;
  clearTimeout(ends);
  ends = setTimeout(() => {
    notice.value = '';
  }, SHOWN_MS);
}
