import type { CompareAnswer } from '../../api/types.ts';
import { useAnswer } from '../answer.ts';
import { Shown } from '../components/states.tsx';
import { Changes } from '../components/tree.tsx';
import { newest } from '../live.ts';
import { address, at, change, mark } from '../location.ts';
import { counted } from '../text.tsx';

/** Two moments side by side: which actors differ, and how. */
export function ComparePage() {
  const from = mark.value;
  const to = at.value ?? newest.value;
  const answer = useAnswer<CompareAnswer>(from === undefined ? undefined : '/api/compare', {
    from,
    to,
    at: to,
  });
  return (
    <>
      <h1>Compare two moments</h1>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <label>
          from record{' '}
          <input
            type="number"
            min="1"
            value={from ?? ''}
            onChange={(event) => change({ mark: event.currentTarget.value })}
          />
        </label>
        <label>
          to record{' '}
          <input
            type="number"
            min="1"
            value={at.value ?? ''}
            placeholder="now"
            onChange={(event) => change({ at: event.currentTarget.value })}
          />
        </label>
        <button type="button" onClick={() => change({ mark: at.value, at: from })}>
          Swap
        </button>
      </form>
      {from === undefined ? (
        <p class="empty">
          Type the number of a record, or mark one where it is explained. What is shown now is the other
          moment.
        </p>
      ) : (
        <Shown of={answer} isEmpty={({ actors }) => actors.length === 0} empty="No actor differs.">
          {({ actors }) => (
            <>
              <p>{counted(actors.length, 'actor')} differ.</p>
              {actors.map(({ id, change: what, stateFrom, stateTo, changes }) => (
                <details key={id} class="card" open={actors.length < 8}>
                  <summary>
                    <span class="actor">{id}</span> {WORDS[what]}{' '}
                    {stateFrom !== stateTo && (
                      <>
                        <span class="state">{stateFrom ?? 'nothing'}</span> →{' '}
                        <span class="state">{stateTo ?? 'nothing'}</span>
                      </>
                    )}
                  </summary>
                  <p>
                    <a href={address(`/actors/${id}`)}>The whole actor</a>
                  </p>
                  <Changes changes={changes} />
                </details>
              ))}
            </>
          )}
        </Shown>
      )}
    </>
  );
}

const WORDS = { new: 'is new', gone: 'is gone', changed: 'changed' } as const;
