import { useEffect } from 'preact/hooks';
import type { RecordAnswer } from '../../api/types.ts';
import { useAnswer } from '../answer.ts';
import { Shown } from '../components/states.tsx';
import { Guards } from '../components/transition.tsx';
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
      {({ row, record, explanation, changes, previousOfActor, nextOfActor, candidates, ledTo, effects }) => (
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
            <a class="button" href={address('/what-if', { alter: row.seq })}>
              What if … (e)
            </a>
            <button type="button" onClick={() => change({ mark: row.seq })}>
              Mark for a comparison (m)
            </button>
          </p>
          <div class="columns">
            <section class="card">
              <h2>Why (w: one cause further back)</h2>
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
              <Changes changes={changes} actor={row.actor} />
              {candidates.length > 0 && <h2>Guards that were asked</h2>}
              <Guards candidates={candidates} />
              <h2>What it asked for</h2>
              {effects.length === 0 && <p class="quiet">No effect.</p>}
              <ul class="linked">
                {effects.map(({ id, type, fate, seq: endedBy }) => (
                  <li key={id}>
                    <code>{row.effects.find((one) => one.id === id)?.type ?? type}</code>{' '}
                    <span class="quiet">{FATES[fate]}</span>{' '}
                    {endedBy !== undefined && (
                      <a href={address(`/records/${endedBy}`, { at: endedBy })}>record {endedBy}</a>
                    )}
                  </li>
                ))}
              </ul>
              {ledTo.length > 0 && (
                <>
                  <h2>What it led to</h2>
                  <ul class="linked">
                    {ledTo.slice(0, 12).map(({ seq: to, actor, event }) => (
                      <li key={to}>
                        <a href={address(`/records/${to}`, { at: to })}>record {to}</a> {event} of {actor}
                      </li>
                    ))}
                  </ul>
                </>
              )}
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

const FATES = {
  outcome: 'ended by',
  cancelled: 'cancelled by',
  open: 'has no outcome yet',
  done: 'done',
} as const;
