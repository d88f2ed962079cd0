import { useEffect, useRef } from 'preact/hooks';
import { addShortcuts } from '../keys.ts';
import { change, params } from '../location.ts';

/** What is shown of the log: by actor, event and text, or only what failed. It stands in the address of the page. */
export function Filters({ fields }: { fields: readonly ('actor' | 'event' | 'text')[] }) {
  const first = useRef<HTMLInputElement>(null);
  useEffect(() => addShortcuts([{ keys: '/', what: 'Filter', run: () => first.current?.focus() }]), []);
  const hints = { actor: 'actor', event: 'event', text: 'text' };
  return (
    <search>
      <form class="filters" onSubmit={apply}>
        {fields.map((field, index) => (
          <label key={field}>
            <span class="hidden">{hints[field]}</span>
            <input
              {...(index === 0 && { ref: first })}
              type="search"
              placeholder={hints[field]}
              value={params.value.get(field) ?? ''}
              name={field}
              onChange={(event) => change({ [field]: event.currentTarget.value })}
            />
          </label>
        ))}
        <label class="check">
          <input
            type="checkbox"
            checked={params.value.has('failed')}
            onChange={(event) => change({ failed: event.currentTarget.checked ? 1 : undefined })}
          />
          only what failed or was refused
        </label>
      </form>
    </search>
  );
}

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
    failed: params.value.has('failed') || undefined,
  };
}
