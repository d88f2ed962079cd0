import type { PagesAnswer } from '../../api/types.ts';
import { address, go, params, path } from '../location.ts';

type Input = PagesAnswer['pages'][number]['inputs'][number];

/** What a person fills in to choose what a page shows. It goes into the address, so that a link shows the same. */
export function Inputs({ inputs }: { inputs: readonly Input[] }) {
  const show = (form: HTMLFormElement) => {
    const given = new FormData(form);
    const values = inputs.map(({ name }) => [name, String(given.get(name) ?? '')] as const);
    go(address(path.value, Object.fromEntries(values)));
  };
  return (
    <form
      class="inputs"
      onSubmit={(event) => {
        event.preventDefault();
        show(event.currentTarget);
      }}
    >
      {inputs.map((input) => (
        <div key={input.name} class={input.kind === 'long' ? 'field long' : 'field'}>
          <label for={`input-${input.name}`}>{input.title}</label>
          <Field input={input} show={show} />
        </div>
      ))}
      <button type="submit">Show</button>
    </form>
  );
}

function Field({
  input: { name, kind, choices = [], value = '', example = '' },
  show,
}: {
  input: Input;
  show: (form: HTMLFormElement) => void;
}) {
  const id = `input-${name}`;
  const filled = params.value.get(name) ?? value;
  if (kind === 'choice')
    return (
      <select id={id} name={name} defaultValue={filled}>
        {choices.map((choice) => (
          <option key={choice} selected={choice === filled}>
            {choice}
          </option>
        ))}
      </select>
    );
  if (kind === 'text') return <input id={id} name={name} defaultValue={filled} placeholder={example} />;
  return (
    <textarea
      id={id}
      name={name}
      rows={4}
      defaultValue={filled}
      placeholder={example}
      spellcheck={false}
      onKeyDown={(event) => {
        const { form } = event.currentTarget;
        if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && form) show(form);
      }}
    />
  );
}
