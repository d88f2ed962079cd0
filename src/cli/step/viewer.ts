/** The record that the viewer shows. */
export interface Position {
  readonly seq: number;
  readonly actor: string;
  readonly correlation: string;
}

/** Which records the viewer steps through; all of them where nothing is set. */
export interface Filter {
  /** An address, or a pattern as `--actor` takes it. */
  readonly actor?: string;
  /** A whole correlation id. */
  readonly story?: string;
}

/** Text that is being typed behind `:` or `/`. */
export interface Prompt {
  readonly kind: ':' | '/';
  readonly text: string;
}

/** Everything that keys change. What is drawn follows from it and the log. */
export interface Viewer {
  readonly here: Position;
  readonly filter: Filter;
  /** What was searched for last. */
  readonly search: string;
  /** First line of the record's page that is shown. */
  readonly scroll: number;
  readonly prompt?: Prompt;
  readonly help: boolean;
  /** The result of the last key where the screen does not show it otherwise, e.g. `not found`. */
  readonly note: string;
}

/** What a key requests that only the log, or the process, can answer. */
export type LogRequest =
  /** Moves by a number of records, back when it is below zero; at most to the end of the log. */
  | { readonly kind: 'walk'; readonly by: number }
  | { readonly kind: 'end'; readonly of: 'first' | 'last' }
  | { readonly kind: 'story'; readonly back: boolean }
  | { readonly kind: 'cause' }
  | { readonly kind: 'effect' }
  | { readonly kind: 'search'; readonly text: string }
  | { readonly kind: 'place'; readonly text: string }
  | { readonly kind: 'narrow'; readonly filter: Filter }
  | { readonly kind: 'suspend' }
  | { readonly kind: 'quit' };

export interface KeyResult {
  readonly viewer: Viewer;
  readonly request?: LogRequest;
}

/** A key as readline names it; `text` is what it types. */
export interface Key {
  readonly name: string;
  readonly text: string;
}

const MAX_PROMPT_LENGTH = 200;

export function viewerAt(here: Position): Viewer {
  return { here, filter: {}, search: '', scroll: 0, help: false, note: '' };
}

/**
 * What a key does. Pure: what needs the log is returned as a request, whose result comes through `movedTo` or `withNote`.
 *
 * @param pageSize records that PgUp and PgDn leap over
 */
export function pressKey(before: Viewer, key: Key, pageSize: number): KeyResult {
  if (key.name === 'ctrl-c') return { viewer: before, request: { kind: 'quit' } };
  if (key.name === 'ctrl-z') return { viewer: before, request: { kind: 'suspend' } };
  const viewer = { ...before, note: '' };
  if (viewer.prompt) return typeInPrompt(viewer, viewer.prompt, key);
  if (viewer.help) return { viewer: { ...viewer, help: false } };
  const { here, filter } = viewer;
  switch (key.text === '' || key.name.length > 1 ? key.name : key.text) {
    case 'down':
    case 'j':
    case 'return':
    case 'space':
      return { viewer, request: { kind: 'walk', by: 1 } };
    case 'up':
    case 'k':
      return { viewer, request: { kind: 'walk', by: -1 } };
    case 'pagedown':
      return { viewer, request: { kind: 'walk', by: pageSize } };
    case 'pageup':
      return { viewer, request: { kind: 'walk', by: -pageSize } };
    case 'home':
    case 'g':
      return { viewer, request: { kind: 'end', of: 'first' } };
    case 'end':
    case 'G':
      return { viewer, request: { kind: 'end', of: 'last' } };
    case 'n':
      return { viewer, request: { kind: 'story', back: false } };
    case 'p':
      return { viewer, request: { kind: 'story', back: true } };
    case 'left':
    case 'h':
      return { viewer, request: { kind: 'cause' } };
    case 'right':
    case 'l':
      return { viewer, request: { kind: 'effect' } };
    case 'a':
      return requestFilter(
        viewer,
        without(filter, 'actor'),
        filter.actor === undefined && { actor: here.actor },
      );
    case 'c':
      return requestFilter(
        viewer,
        without(filter, 'story'),
        filter.story === undefined && { story: here.correlation },
      );
    case 'd':
      return { viewer: { ...viewer, scroll: viewer.scroll + 1 } };
    case 'u':
      return { viewer: { ...viewer, scroll: Math.max(0, viewer.scroll - 1) } };
    case '/':
      return { viewer: { ...viewer, prompt: { kind: '/', text: '' } } };
    case ':':
      return { viewer: { ...viewer, prompt: { kind: ':', text: '' } } };
    case '?':
      return { viewer: { ...viewer, help: true } };
    case 'q':
      return { viewer, request: { kind: 'quit' } };
    default:
      return { viewer };
  }
}

/** The request found a record, and the viewer moves to it. */
export function movedTo(viewer: Viewer, here: Position, note = ''): Viewer {
  return { ...viewer, here, note, scroll: here.seq === viewer.here.seq ? viewer.scroll : 0 };
}

/** The request found nothing: the viewer keeps its record, and a note says why. */
export function withNote(viewer: Viewer, note: string): Viewer {
  return { ...viewer, note };
}

function typeInPrompt(viewer: Viewer, prompt: Prompt, { name, text }: Key): KeyResult {
  const { prompt: _, ...closed } = viewer;
  if (name === 'escape') return { viewer: closed };
  if (name === 'return' || name === 'enter') return submitPrompt(closed, prompt);
  if (name === 'backspace') {
    if (prompt.text === '') return { viewer: closed };
    return { viewer: { ...closed, prompt: { ...prompt, text: [...prompt.text].slice(0, -1).join('') } } };
  }
  const fits = text !== '' && /^[^\p{Cc}\p{Cf}]+$/u.test(text) && prompt.text.length < MAX_PROMPT_LENGTH;
  return { viewer: fits ? { ...closed, prompt: { ...prompt, text: prompt.text + text } } : viewer };
}

function submitPrompt(viewer: Viewer, { kind, text }: Prompt): KeyResult {
  const words = text.trim();
  if (kind === '/') {
    const search = words || viewer.search;
    if (search === '') return { viewer: { ...viewer, note: 'nothing was searched for yet' } };
    return { viewer: { ...viewer, search }, request: { kind: 'search', text: search } };
  }
  if (words === '') return { viewer };
  const [, actor] = /^actor(?:\s+(\S+))?$/.exec(words) ?? [];
  if (words.startsWith('actor') && (actor !== undefined || words === 'actor'))
    return requestFilter(viewer, without(viewer.filter, 'actor'), actor !== undefined && { actor });
  if (words === 'q' || words === 'quit') return { viewer, request: { kind: 'quit' } };
  return { viewer, request: { kind: 'place', text: words } };
}

/** The filter is set only when the log has a record that matches it, so this is a request. */
function requestFilter(viewer: Viewer, rest: Filter, more: Filter | false): KeyResult {
  return { viewer, request: { kind: 'narrow', filter: { ...rest, ...(more || {}) } } };
}

function without(filter: Filter, field: keyof Filter): Filter {
  const { [field]: _, ...rest } = filter;
  return rest;
}
