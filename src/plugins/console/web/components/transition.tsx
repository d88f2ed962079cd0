import type { ActorAnswer, Candidate, MachineAnswer, RecordAnswer, RecordRow } from '../../api/types.ts';
import { useAnswer } from '../answer.ts';
import { at } from '../location.ts';
import { Countdown, duration } from '../text.tsx';

/** The guards that were asked, in their order: the last is the one that let it pass, those before refused. */
export function Guards({ candidates }: { candidates: readonly Candidate[] }) {
  if (candidates.length === 0) return null;
  const isTaken = candidates.some(({ taken }) => taken);
  return (
    <>
      {!isTaken && <p>No guard let it pass: the machine stayed as it was.</p>}
      <ol class="guards">
        {candidates.map(({ state, guard, target, taken }) => (
          <li key={`${state} ${guard} ${target}`} class={taken ? 'taken' : 'refused'}>
            <strong>{taken ? '✓ taken' : '✕ refused'}</strong>{' '}
            {guard === undefined ? 'without a guard' : <code>{guard}</code>}{' '}
            <span class="quiet">
              in {state || 'any state'}
              {target === undefined ? ', which stays' : ` → ${target}`}
            </span>
          </li>
        ))}
      </ol>
    </>
  );
}

/** The last transition of an actor, with its guards and what was possible and not taken. */
export function LastTransition({ last }: { last: RecordRow }) {
  const { data } = useAnswer<RecordAnswer>(`/api/records/${last.seq}`, {}, 'fixed');
  return (
    <>
      <p>
        <code>{last.event}</code>{' '}
        {last.ignored ? (
          'changed nothing'
        ) : (
          <>
            <span class="state">{last.from ?? 'nothing'}</span> → <span class="state">{last.to}</span>
          </>
        )}
        {last.effects.length > 0 && (
          <span class="quiet"> asked for {last.effects.map(({ type }) => type).join(', ')}</span>
        )}
      </p>
      <Guards candidates={data?.candidates ?? []} />
    </>
  );
}

/** What could come next: the transitions of the states that are active. */
export function NextTransitions({ machine, actor }: { machine: MachineAnswer; actor: ActorAnswer }) {
  const active = new Set(['', ...activeStates(actor.value)]);
  const ways = machine.transitions.filter(({ from }) => active.has(from));
  if (actor.done) return <p class="quiet">Nothing: it reached a final state.</p>;
  if (ways.length === 0) return <p class="quiet">Nothing leads out of its state.</p>;
  return (
    <ul class="transitions">
      {ways.map(({ from, to, event, guard, delay, effects }) => {
        const timer = delay === undefined ? undefined : actor.timers.find(({ name }) => name === delay);
        return (
          <li key={`${from} ${event} ${delay} ${to} ${guard}`}>
            <code>{delay === undefined ? event || 'at once' : `after ${delay}`}</code>
            {timer && (
              <>
                {' '}
                <Due due={timer.at} then={actor.time} />
              </>
            )}
            {guard && <span class="quiet"> if {guard}</span>}
            {to !== from && (
              <>
                {' → '}
                <span class="state">{to}</span>
              </>
            )}
            {effects.length > 0 && <span class="quiet"> / {effects.join(', ')}</span>}
          </li>
        );
      })}
    </ul>
  );
}

/** How long until a timer goes off: counting down now, as it was then in the past. */
export function Due({ due, then }: { due: number; then: number }) {
  if (at.value === undefined) return <Countdown due={due} />;
  return <span>{due > then ? `in ${duration(due - then)}` : 'due'}</span>;
}

/** The ids of states that are active: `a` and `a.b` for the value `{ a: 'b' }`. */
export function activeStates(value: unknown, around = ''): string[] {
  const inside = (name: string) => (around === '' ? name : `${around}.${name}`);
  if (typeof value === 'string') return [inside(value)];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, below]) => [
    inside(name),
    ...activeStates(below, inside(name)),
  ]);
}
