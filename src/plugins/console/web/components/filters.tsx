import type { RefObject } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { say } from '../cursor.ts';
import { addShortcuts } from '../keys.ts';
import { change, params, path } from '../location.ts';
import { openView, removeView, saveView, views } from '../views.ts';

const HINTS = {
  actor: 'actor, -actor',
  event: 'event, -event',
  text: 'text, -text, "two words", /expression/',
};
const OUTCOMES = [
  ['', 'any outcome'],
  ['done', 'done'],
  ['failed', 'failed'],
  ['lost', 'lost with the process'],
  ['ignored', 'refused: not taken'],
  ['stale', 'too late'],
] as const;

/** What is shown of the log: by actor, event, text and outcome, or only what failed. It stands in the address of the page. */
export function Filters({ fields }: { fields: readonly ('actor' | 'event' | 'text')[] }) {
  const first = useRef<HTMLInputElement>(null);
  useEffect(() => addShortcuts([{ keys: '/', what: 'Filter', run: () => first.current?.focus() }]), []);
  const isSet = Object.values(filterQuery()).some((value) => value !== undefined);
  return (
    <search class="filter-bar">
      <form class="filters" onSubmit={apply}>
        {fields.map((field, index) => (
          <SearchField
            key={field}
            name={field}
            label={field}
            hint={HINTS[field]}
            title={`${HINTS[field]}: with - before it, what is left out`}
            {...(index === 0 && { field: first })}
          />
        ))}
        <label>
          <span class="hidden">outcome</span>
          <select
            value={params.value.get('outcome') ?? ''}
            onChange={(event) => change({ outcome: event.currentTarget.value })}
          >
            {OUTCOMES.map(([value, text]) => (
              <option key={value} value={value}>
                {text}
              </option>
            ))}
          </select>
        </label>
        <label class="check">
          <input
            type="checkbox"
            checked={params.value.has('failed')}
            onChange={(event) => change({ failed: event.currentTarget.checked ? 1 : undefined })}
          />
          only what failed or was refused
        </label>
        {isSet && (
          <button type="button" onClick={clear}>
            Clear
          </button>
        )}
      </form>
      <Views isSet={isSet} />
    </search>
  );
}

/**
 * A field for a parameter of the address, which changes when the field is left. What is being typed stays as it is while
 * records come in and the page is drawn anew.
 */
export function SearchField({
  name,
  label,
  hint,
  title,
  field,
}: {
  name: string;
  label: string;
  hint: string;
  title?: string;
  field?: RefObject<HTMLInputElement | null>;
}) {
  const value = params.value.get(name) ?? '';
  const [draft, setDraft] = useState(value);
  useEffect(() => setDraft(value), [value]);
  return (
    <label class={`${name}-filter`}>
      <span class="hidden">{label}</span>
      <input
        {...(field && { ref: field })}
        type="search"
        name={name}
        placeholder={hint}
        title={title ?? hint}
        value={draft}
        onInput={(event) => setDraft(event.currentTarget.value)}
        onChange={(event) => change({ [name]: event.currentTarget.value })}
      />
    </label>
  );
}

/** The views that somebody kept, and the way to keep one more. */
function Views({ isSet }: { isSet: boolean }) {
  const own = views.value.filter((one) => one.path === path.value);
  if (own.length === 0 && !isSet) return null;
  return (
    <form
      class="filters views"
      onSubmit={(event) => {
        event.preventDefault();
        const field = event.currentTarget.elements.namedItem('view');
        if (!(field instanceof HTMLInputElement) || field.value.trim() === '') return;
        saveView(field.value.trim());
        say(`The view ${field.value.trim()} is kept in this browser.`);
        field.value = '';
      }}
    >
      {own.map((view) => (
        <span key={view.name} class="view">
          <button type="button" onClick={() => openView(view)}>
            {view.name}
          </button>
          <button
            type="button"
            aria-label={`Forget the view ${view.name}`}
            onClick={() => removeView(view.name)}
          >
            ×
          </button>
        </span>
      ))}
      {isSet && (
        <>
          <label>
            <span class="hidden">Name of the view</span>
            <input name="view" placeholder="keep this view as …" maxLength={60} />
          </label>
          <button type="submit">Keep</button>
        </>
      )}
    </form>
  );
}

const clear = () =>
  change({ actor: undefined, event: undefined, text: undefined, failed: undefined, outcome: undefined });

/** Enter counts as leaving the field. */
function apply(event: SubmitEvent): void {
  event.preventDefault();
  if (!(event.currentTarget instanceof HTMLFormElement)) return;
  const fields = [...new FormData(event.currentTarget)].map(
    ([name, value]) => [name, String(value)] as const,
  );
  change(Object.fromEntries(fields));
}

/** The filters that are set, as the API takes them. */
export function filterQuery(): Record<string, string | boolean | undefined> {
  const text = (name: string) => params.value.get(name) ?? undefined;
  return {
    actor: text('actor'),
    event: text('event'),
    text: text('text'),
    outcome: text('outcome'),
    failed: params.value.has('failed') || undefined,
  };
}
