import type { ActorAnswer, MachineAnswer, RecordsAnswer as Page } from '../../api/types.ts';
import { useAnswer } from '../answer.ts';
import { RecordLine } from '../components/record-line.tsx';
import { Rows } from '../components/rows.tsx';
import { Statechart } from '../components/statechart.tsx';
import { Shown } from '../components/states.tsx';
import { Changes, Tree } from '../components/tree.tsx';
import { address, at } from '../location.ts';
import { duration, Time } from '../text.tsx';

/** One actor: its statechart with the state it is in, its context, what it waits for, and its records. */
export function ActorPage({ id }: { id: string }) {
  const answer = useAnswer<ActorAnswer>(`/api/actors/${encodeURIComponent(id)}`, { at: at.value });
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
              <h2>Context</h2>
              <Tree value={actor.context} changed={new Set(actor.changes.map(({ path }) => path))} />
              <details>
                <summary>What the last record changed</summary>
                <Changes changes={actor.changes} />
              </details>
              <h2>Waits for</h2>
              <Waits actor={actor} />
            </section>
          </div>
          <Records id={id} />
        </>
      )}
    </Shown>
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
          , for {duration(time - asked)}
        </li>
      ))}
      {timers.map(({ name, at: due }) => (
        <li key={name}>
          the timer <code>{name}</code>, due in {duration(due - time)} (<Time ms={due} />)
        </li>
      ))}
    </ul>
  );
}

function Records({ id }: { id: string }) {
  const before = at.value === undefined ? undefined : at.value + 1;
  const answer = useAnswer<Page>('/api/records', { actor: id, before, at: at.value, limit: 200 });
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
