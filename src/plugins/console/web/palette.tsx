import { signal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import type { ActorsAnswer } from '../api/types.ts';
import { get } from './api.ts';
import { addShortcuts, shortcuts } from './keys.ts';
import { address, go, here, travel } from './location.ts';

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
    { text: `Stories with “${text}”`, hint: 'search', run: () => go(address('/stories', { text })) },
  ];
}

/** Ctrl+K: any page, actor or record by a few letters of its name. */
export function Palette({ links }: { links: readonly { to: string; title: string }[] }) {
  const close = () => {
    paletteOpen.value = false;
  };
  useEffect(
    () =>
      addShortcuts([
        {
          keys: 'Ctrl+k',
          what: 'Go to a page, an actor or a record',
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
  const choices: readonly Choice[] = [...pages, ...found.value];
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
                key={`${choice.hint} ${choice.text}`}
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
        {
          keys: 'y',
          what: 'Copy a link to what is shown',
          run: () => void navigator.clipboard.writeText(location.origin + here()),
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
            {shortcuts.value.map(({ keys, what }) => (
              <div key={keys}>
                <dt>
                  {keys.split(' ').map((key) => (
                    <kbd key={key}>{key}</kbd>
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
