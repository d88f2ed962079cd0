import { useEffect } from 'preact/hooks';
import type { RecordAnswer } from '../../api/types.ts';
import { useAnswer } from '../answer.ts';
import { Shown } from '../components/states.tsx';
import { Changes, Tree } from '../components/tree.tsx';
import { address, at, change, travel } from '../location.ts';
import { Time } from '../text.tsx';

/** Why a record came to be, what it changed, and what it asked for. */
export function RecordPage({ seq }: { seq: number }) {
  const shown = at.value ?? seq;
  useEffect(() => {
    if (at.value === undefined) travel(seq); // a record is a moment
  }, [seq]);
  const answer = useAnswer<RecordAnswer>(`/api/records/${shown}`, {}, 'fixed');
  return (
    <Shown of={answer}>
      {({ row, record, explanation, changes, previousOfActor, nextOfActor }) => (
        <>
          <h1 class="linked">
            Record {row.seq}: {row.event}
            <span class="quiet">
              {' '}
              of <a href={address(`/actors/${row.actor}`, { at: row.seq })}>{row.actor}</a>,{' '}
              <Time ms={row.time} millis />
            </span>
          </h1>
          <p class="actions">
            <button
              type="button"
              disabled={previousOfActor === undefined}
              onClick={() => travel(previousOfActor)}
            >
              Previous of this actor (K)
            </button>
            <button type="button" disabled={nextOfActor === undefined} onClick={() => travel(nextOfActor)}>
              Next of this actor (J)
            </button>
            <a class="button" href={address(`/stories/${row.correlation}`, { at: row.seq })}>
              Its story
            </a>
            <a class="button" href={address('/what-if', { drop: row.seq })}>
              What if it had not happened
            </a>
            <button type="button" onClick={() => change({ mark: row.seq })}>
              Mark for a comparison
            </button>
          </p>
          <div class="columns">
            <section class="card">
              <h2>Why</h2>
              <ol class="why linked">
                {explanation.map(({ text, seq: to }) => (
                  <li key={`${to} ${text}`}>
                    {text}{' '}
                    {to !== undefined && to !== row.seq && (
                      <a href={address(`/records/${to}`, { at: to })}>record {to}</a>
                    )}
                  </li>
                ))}
              </ol>
              <h2>What it changed</h2>
              {row.from !== row.to && (
                <p>
                  <span class="state">{row.from ?? 'nothing'}</span> → <span class="state">{row.to}</span>
                </p>
              )}
              <Changes changes={changes} />
              <h2>What it asked for</h2>
              {row.effects.length === 0 && <p class="quiet">No effect.</p>}
              <ul>
                {row.effects.map(({ id, type }) => (
                  <li key={id}>
                    <code>{type}</code>
                  </li>
                ))}
              </ul>
            </section>
            <section class="card">
              <h2>The record as it stands in the log</h2>
              <Tree value={record} />
            </section>
          </div>
        </>
      )}
    </Shown>
  );
}
