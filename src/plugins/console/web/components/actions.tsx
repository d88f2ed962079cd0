import { useState } from 'preact/hooks';
import type { ActionAnswer, ActionsAnswer } from '../../api/types.ts';
import { useAnswer } from '../answer.ts';
import { ApiError, post } from '../api.ts';
import { log } from '../live.ts';
import { at } from '../location.ts';
import { Problem } from './states.tsx';
import { Tree } from './tree.tsx';

type Action = ActionsAnswer['actions'][number];

/** What can be done in an area: each is told in words before it is done, and none is possible in the past. */
export function Actions({ area }: { area: string }) {
  const { data } = useAnswer<ActionsAnswer>('/api/actions', {}, 'fixed');
  const [chosen, setChosen] = useState<Action | undefined>(undefined);
  const own = (data?.actions ?? []).filter((action) => action.area === area);
  if (own.length === 0 || log.value?.mode !== 'live') return null;
  const isPast = at.value !== undefined;
  return (
    <section class="card">
      <h2>What can be done</h2>
      {isPast && <p class="quiet">Nothing, while the past is shown. Go back to now.</p>}
      <p class="actions">
        {own.map((action) => (
          <button key={action.name} type="button" disabled={isPast} onClick={() => setChosen(action)}>
            {action.title} …
          </button>
        ))}
      </p>
      {chosen && !isPast && (
        <ActionForm key={chosen.name} action={chosen} close={() => setChosen(undefined)} />
      )}
    </section>
  );
}

function ActionForm({ action, close }: { action: Action; close: () => void }) {
  const [fault, setFault] = useState<ApiError | undefined>(undefined);
  const [answer, setAnswer] = useState<ActionAnswer | undefined>(undefined);
  const [running, setRunning] = useState(false);
  const run = async (form: HTMLFormElement) => {
    setRunning(true);
    setFault(undefined);
    const fields: Record<string, string | number> = {};
    for (const { name, kind } of action.fields) {
      const value = String(new FormData(form).get(name) ?? '');
      if (value !== '') fields[name] = kind === 'number' ? Number(value) : value;
    }
    try {
      setAnswer(await post<ActionAnswer>(`/api/actions/${action.name}`, { fields }));
    } catch (error) {
      setFault(error instanceof ApiError ? error : new ApiError(0, 'fault', String(error)));
    } finally {
      setRunning(false);
    }
  };
  return (
    <form
      class="asked"
      onSubmit={(event) => {
        event.preventDefault();
        void run(event.currentTarget);
      }}
    >
      <p>
        <strong>{action.title}.</strong> {action.confirm}
      </p>
      {action.fields.map(({ name, title, kind, choices, required }) => (
        <div key={name} class="field">
          <label for={`field-${name}`}>{title}</label>
          {kind === 'choice' ? (
            <select id={`field-${name}`} name={name} required={required}>
              {choices?.map((choice) => (
                <option key={choice}>{choice}</option>
              ))}
            </select>
          ) : (
            <input
              id={`field-${name}`}
              name={name}
              required={required}
              inputMode={kind === 'number' ? 'decimal' : 'text'}
              placeholder={kind === 'duration' ? 'e.g. 30m' : ''}
            />
          )}
        </div>
      ))}
      <p class="actions">
        <button type="submit" disabled={running || answer !== undefined}>
          {running ? 'Is being done …' : action.title}
        </button>
        <button type="button" onClick={close}>
          {answer ? 'Close' : 'Do not'}
        </button>
      </p>
      {fault && <Problem error={fault} />}
      {answer && (
        <output>
          Done. <Tree value={answer.answer} />
        </output>
      )}
    </form>
  );
}
