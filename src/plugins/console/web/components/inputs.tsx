import { useEffect, useRef } from 'preact/hooks';
import type { PagesAnswer } from '../../api/types.ts';
import { addShortcuts } from '../keys.ts';
import { address, go, params, path } from '../location.ts';

type Input = PagesAnswer['pages'][number]['inputs'][number];

const filledIn = ({ name, value = '' }: Input): string => params.value.get(name) ?? value;

/** What a person fills in to choose what a page shows. It goes into the address, so that a link shows the same. */
export function Inputs({ inputs }: { inputs: readonly Input[] }) {
  const form = useRef<HTMLFormElement>(null);
  const query = params.value.toString();
  // A link or the back button has changed what is filled in; who types keeps the field.
  useEffect(() => {
    for (const input of inputs) {
      const field = form.current?.elements.namedItem(input.name);
      const isField = field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement;
      if (isField || field instanceof HTMLSelectElement) field.value = filledIn(input);
    }
  }, [query]);
  useEffect(() => {
    const first = () => form.current?.querySelector<HTMLElement>('input, textarea, select')?.focus();
    return addShortcuts([{ keys: '/', what: 'Fill in what the page shows', run: first }]);
  }, []);
  const show = (of: HTMLFormElement) => {
    const given = new FormData(of);
    const values = inputs.map((input) => {
      const value = String(given.get(input.name) ?? '').trim();
      // An address names only what differs from what is usual; a text that was emptied counts as left out.
      return [input.name, value === (input.value ?? '') ? '' : value] as const;
    });
    go(address(path.value, Object.fromEntries(values)));
  };
  const isFilled = inputs.some(({ name }) => params.value.has(name));
  return (
    <search>
      <form
        ref={form}
        class="inputs"
        onSubmit={(event) => {
          event.preventDefault();
          show(event.currentTarget);
        }}
      >
        {inputs.map((input) => (
          <div key={input.name} class={`field ${input.kind}`}>
            <label for={`input-${input.name}`}>{input.title}</label>
            <Field input={input} show={show} />
          </div>
        ))}
        <div class="buttons">
          <button type="submit" class="primary">
            Show
          </button>
          {isFilled && (
            <a class="button" href={address(path.value)}>
              Clear
            </a>
          )}
        </div>
      </form>
    </search>
  );
}

function Field({ input, show }: { input: Input; show: (form: HTMLFormElement) => void }) {
  const { name, kind, choices = [], example = '' } = input;
  const id = `input-${name}`;
  if (kind === 'choice')
    return (
      <select id={id} name={name}>
        {choices.map((choice) => (
          <option key={choice} selected={choice === filledIn(input)}>
            {choice}
          </option>
        ))}
      </select>
    );
  if (kind === 'text')
    return (
      <input
        id={id}
        name={name}
        defaultValue={filledIn(input)}
        placeholder={example}
        autocomplete="off"
        spellcheck={false}
      />
    );
  return (
    <>
      <textarea
        id={id}
        name={name}
        rows={Math.min(14, Math.max(4, filledIn(input).split('\n').length + 1))}
        defaultValue={filledIn(input)}
        placeholder={example}
        spellcheck={false}
        aria-describedby={`${id}-keys`}
        onKeyDown={(event) => {
          const { form } = event.currentTarget;
          if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey) || !form) return;
          event.preventDefault();
          show(form);
        }}
      />
      <span id={`${id}-keys`} class="quiet">
        Ctrl+Enter shows it
      </span>
    </>
  );
}
