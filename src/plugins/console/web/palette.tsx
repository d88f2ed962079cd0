import { signal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import type { ActorsAnswer } from '../api/types.ts';
import { get } from './api.ts';
import { addShortcuts, type Shortcut, shortcuts } from './keys.ts';
import { address, go, travel } from './location.ts';
import { visited } from './notebook.ts';
import { Time } from './text.tsx';
import { openView, views } from './views.ts';

const paletteOpen = signal(false);
const helpOpen = signal(false);

/** A dialog of the browser's own: it keeps the focus, and Escape closes it. */
function useDialog(open: boolean, close: () => void) {
  const ref = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    // Before the next key: what is typed at once belongs to the dialog.
    const dialog = ref.current;
    if (!dialog) return;
    if (open && !dialog.open) dialog.showModal();
    if (!open && dialog.open) dialog.close();
  }, [open]);
  return { ref, onClose: close, open };
}

interface Choice {
  readonly text: string;
  readonly hint: string;
  readonly run: () => void;
}

const typed = signal('');
const found = signal<readonly Choice[]>([]);
const chosen = signal(0);

/** Actors whose name has the text, and the record of that number. */
async function search(text: string): Promise<Choice[]> {
  const record: Choice[] = /^\d+$/.test(text)
    ? [
        { text: `Record ${text}`, hint: 'explain', run: () => go(address(`/records/${text}`, { at: text })) },
        { text: `As of record ${text}`, hint: 'travel', run: () => travel(Number(text)) },
      ]
    : [];
  if (text.length < 2) return record;
  const { actors } = await get<ActorsAnswer>('/api/actors', { text, limit: 12 });
  return [
    ...record,
    ...actors.map(({ id, state }) => ({ text: id, hint: state, run: () => go(address(`/actors/${id}`)) })),
  ];
}

/** Everything else that can be gone to or done: views, moments that were looked at, and what keys do. */
function known(text: string): Choice[] {
  const all: Choice[] = [
    ...views.value.map((view) => ({ text: view.name, hint: 'view', run: () => openView(view) })),
    ...visited.value.map(({ title, address: to }) => ({ text: title, hint: 'visited', run: () => go(to) })),
    ...(text === '' ? [] : shortcuts.value).map(({ what, keys, run }) => ({ text: what, hint: keys, run })),
  ];
  return all.filter((choice) => choice.text.toLowerCase().includes(text)).slice(0, text === '' ? 12 : 40);
}

/** Ctrl+K: any page, actor or record by a few letters of its name, and all that can be done. */
export function Palette({ links }: { links: readonly { to: string; title: string }[] }) {
  const close = () => {
    paletteOpen.value = false;
  };
  useEffect(
    () =>
      addShortcuts([
        {
          keys: 'Ctrl+k',
          what: 'Go to a page, an actor, a record or a view, or do what a key does',
          run: () => {
            typed.value = '';
            found.value = [];
            paletteOpen.value = true;
          },
        },
      ]),
    [],
  );
  const text = typed.value.toLowerCase();
  const pages = links
    .filter(({ title }) => title.toLowerCase().includes(text))
    .map(({ to, title }) => ({ text: title, hint: 'page', run: () => go(address(to)) }));
  const searches =
    text.length < 2
      ? []
      : [
          {
            text: `Stories with “${typed.value}”`,
            hint: 'search',
            run: () => go(address('/stories', { text: typed.value })),
          },
        ];
  const choices: readonly Choice[] = [...pages, ...found.value, ...known(text), ...searches];
  const run = (choice: Choice | undefined) => {
    close();
    choice?.run();
  };
  const onKey = (event: KeyboardEvent) => {
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (move !== undefined) {
      event.preventDefault();
      chosen.value = Math.min(choices.length - 1, Math.max(0, chosen.value + move));
    }
    if (event.key === 'Enter') {
      event.preventDefault();
      run(choices[chosen.value]);
    }
  };
  const { ref, onClose, open } = useDialog(paletteOpen.value, close);
  return (
    <dialog ref={ref} onClose={onClose} class="palette" aria-label="Go to">
      {open && (
        <>
          <input
            type="text"
            role="combobox"
            aria-expanded="true"
            aria-controls="choices"
            aria-activedescendant={`choice-${chosen.value}`}
            aria-label="Page, actor, record or text"
            placeholder="page, actor, record or text"
            onKeyDown={onKey}
            onInput={(event) => {
              const { value } = event.currentTarget;
              typed.value = value;
              chosen.value = 0;
              // Enter may come before the answer: what was found for fewer letters must not be chosen then.
              found.value = found.value.filter((choice) => choice.text.includes(value));
              void search(value).then((choices) => {
                if (typed.value === value) found.value = choices;
              });
            }}
          />
          <div id="choices" class="choices" role="listbox" aria-label="Found">
            {choices.map((choice, index) => (
              <div
                key={`${index} ${choice.hint} ${choice.text}`}
                id={`choice-${index}`}
                role="option"
                tabIndex={-1}
                aria-selected={index === chosen.value}
                onClick={() => run(choice)}
                onKeyDown={onKey}
              >
                {choice.text} <span class="quiet">{choice.hint}</span>
              </div>
            ))}
          </div>
        </>
      )}
    </dialog>
  );
}

/** A page's own key hides that of the console. */
function distinct(all: readonly Shortcut[]): Shortcut[] {
  return [...new Map(all.map((one) => [one.keys, one])).values()];
}

/** `?`: all that keys do here. */
export function Help() {
  const close = () => {
    helpOpen.value = false;
  };
  useEffect(
    () =>
      addShortcuts([
        {
          keys: '?',
          what: 'What keys do',
          run: () => {
            helpOpen.value = true;
          },
        },
      ]),
    [],
  );
  const { ref, onClose, open } = useDialog(helpOpen.value, close);
  return (
    <dialog ref={ref} onClose={onClose} class="help" aria-label="Keys">
      {open && (
        <>
          <h2>Keys</h2>
          <dl>
            {distinct(shortcuts.value).map(({ keys, what }) => (
              <div key={keys}>
                <dt>
                  {keys.split(' ').map((key, index) => (
                    <kbd key={`${index} ${key}`}>{key}</kbd>
                  ))}
                </dt>
                <dd>{what}</dd>
              </div>
            ))}
          </dl>
          <form method="dialog">
            <button type="submit">Close</button>
          </form>
        </>
      )}
    </dialog>
  );
}

const notebookOpen = signal(false);

/** `v`: the moments that were looked at in this window, newest first. */
export function Notebook() {
  const close = () => {
    notebookOpen.value = false;
  };
  useEffect(
    () =>
      addShortcuts([
        {
          keys: 'v',
          what: 'Moments that were visited',
          run: () => {
            notebookOpen.value = true;
          },
        },
      ]),
    [],
  );
  const { ref, onClose, open } = useDialog(notebookOpen.value, close);
  return (
    <dialog ref={ref} onClose={onClose} class="notebook" aria-label="Visited moments">
      {open && (
        <>
          <h2>Visited moments</h2>
          {visited.value.length === 0 && <p class="quiet">None yet: what one looks at is kept here.</p>}
          <ol>
            {visited.value.map(({ address: to, title, seen }) => (
              <li key={`${seen} ${to}`}>
                <a href={to} onClick={close}>
                  {title}
                </a>{' '}
                <span class="quiet">
                  <Time ms={seen} />
                </span>
              </li>
            ))}
          </ol>
          <form method="dialog">
            <button type="submit">Close</button>
          </form>
        </>
      )}
    </dialog>
  );
}
