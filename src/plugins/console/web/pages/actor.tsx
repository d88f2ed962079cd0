import { useEffect, useState } from 'preact/hooks';
import type { ActorAnswer, ChangesAnswer, MachineAnswer, RecordsAnswer as Page } from '../../api/types.ts';
import { useAnswer } from '../answer.ts';
import { clockNow } from '../clock.ts';
import { chosenValue } from '../commands.ts';
import { RecordLine } from '../components/record-line.tsx';
import { Rows } from '../components/rows.tsx';
import { Statechart } from '../components/statechart.tsx';
import { Shown } from '../components/states.tsx';
import { Due, LastTransition, NextTransitions } from '../components/transition.tsx';
import { Changes, Tree } from '../components/tree.tsx';
import { subject } from '../cursor.ts';
import { address, at, path, zoom } from '../location.ts';
import { brief, duration, Time } from '../text.tsx';

/** One actor: its statechart with the state it is in, its context, what it waits for, and its records. */
export function ActorPage({ id }: { id: string }) {
  const answer = useAnswer<ActorAnswer>(`/api/actors/${encodeURIComponent(id)}`, {
    ...{ at: at.value, from: zoom.value.from },
  });
  const { last } = answer.data ?? {};
  useEffect(() => {
    if (last) subject.value = { path: path.value, seq: last.seq };
  }, [last?.seq]);
  const [find, setFind] = useState('');
  const chosen = chosenValue()?.path;
  const graph = useAnswer<MachineAnswer>(
    answer.data && `/api/machines/${encodeURIComponent(id.split('/', 1)[0] ?? '')}`,
  );
  return (
    <Shown of={answer}>
      {(actor) => (
        <>
          <h1 class="linked">
            {actor.id} <span class="state">{actor.state}</span>
            {actor.last && (
              <span class="quiet">
                {' '}
                since{' '}
                <a href={address(`/records/${actor.last.seq}`, { at: actor.last.seq })}>{actor.last.event}</a>
                , <Time ms={actor.last.time} />
              </span>
            )}
          </h1>
          <div class="columns">
            <section class="card">
              <h2>Statechart of {actor.machine}</h2>
              <Shown of={graph}>{(machine) => <Statechart machine={machine} actor={actor} />}</Shown>
            </section>
            <section class="card">
              {actor.last && (
                <>
                  <h2>Last transition</h2>
                  <LastTransition last={actor.last} />
                  <Changes changes={actor.changes} actor={actor.id} />
                </>
              )}
              <h2>Waits for</h2>
              <Waits actor={actor} />
              <h2>What could come next</h2>
              {graph.data && <NextTransitions machine={graph.data} actor={actor} />}
              <div class="card-head">
                <h2>Context</h2>
                <label>
                  <span class="hidden">Search in the context</span>
                  <input
                    type="search"
                    placeholder="search in it"
                    onInput={(event) => setFind(event.currentTarget.value)}
                  />
                </label>
              </div>
              {chosen !== undefined && <WhoChanged actor={actor.id} value={chosen} />}
              <Tree
                value={actor.context}
                changed={new Set(actor.changes.map(({ path }) => path))}
                find={find}
                actor={actor.id}
                chosen={chosen}
              />
            </section>
          </div>
          <Records id={id} />
        </>
      )}
    </Shown>
  );
}

/** Which records changed a value: the newest at the moment that is shown first. */
function WhoChanged({ actor, value }: { actor: string; value: string }) {
  const answer = useAnswer<ChangesAnswer>('/api/changes', { actor, path: value, at: at.value, limit: 8 });
  return (
    <section class="who-changed" aria-label={`Who changed ${value}`}>
      <h3>
        Who changed <code>{value}</code>{' '}
        <span class="quiet">
          <kbd>n</kbd> <kbd>N</kbd>
        </span>
      </h3>
      <Shown
        of={answer}
        isEmpty={({ changes, next }) => changes.length === 0 && next === undefined}
        empty="No record in this log."
      >
        {({ changes, next }) => (
          <ol>
            {changes.map(({ seq, time, event, from, to }) => (
              <li key={seq} class={seq === at.value ? 'current' : undefined}>
                <a href={address(`/actors/${actor}`, { value, at: seq })}>{seq}</a> <Time ms={time} />{' '}
                <span class="event">{event}</span> <code>{brief(from ?? 'nothing', 60)}</code> →{' '}
                <code>{brief(to ?? 'nothing', 60)}</code>
              </li>
            ))}
            {next !== undefined && <li class="quiet">and earlier ones: N goes on</li>}
          </ol>
        )}
      </Shown>
    </section>
  );
}

function Waits({ actor: { effects, timers, time } }: { actor: ActorAnswer }) {
  if (effects.length + timers.length === 0)
    return <p class="quiet">Nothing: no effect is open and no timer is armed.</p>;
  return (
    <ul class="linked">
      {effects.map(({ id, type, seq, time: asked }) => (
        <li key={id}>
          the effect <code>{type}</code> of <a href={address(`/records/${seq}`, { at: seq })}>record {seq}</a>
          , <Since since={asked} then={time} />
        </li>
      ))}
      {timers.map(({ name, at: due }) => (
        <li key={name}>
          the timer <code>{name}</code>, due <Due due={due} then={time} /> (<Time ms={due} />)
        </li>
      ))}
    </ul>
  );
}

/** How long something waits: counting now, as it was then in the past. */
function Since({ since, then }: { since: number; then: number }) {
  const now = at.value === undefined ? clockNow.value : then;
  return <>for {duration(Math.max(0, now - since))}</>;
}

function Records({ id }: { id: string }) {
  const before = at.value === undefined ? undefined : at.value + 1;
  const answer = useAnswer<Page>('/api/records', {
    ...{ actor: id, before, at: at.value, limit: 200 },
    ...zoom.value,
  });
  return (
    <section>
      <h2>Its records</h2>
      <Shown of={answer} isEmpty={({ records }) => records.length === 0}>
        {({ records }) => (
          <Rows
            rows={records}
            height={26}
            keyOf={({ seq }) => seq}
            draw={(row) => <RecordLine row={row} current={row.seq === at.value} />}
            label={`Records of ${id}`}
          />
        )}
      </Shown>
    </section>
  );
}
