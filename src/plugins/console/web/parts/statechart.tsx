import { Component, type ComponentChildren } from 'preact';
import type { ActorDetail, MachineGraph, StateNode } from '../model.ts';
import { counted } from '../text.tsx';

/** The ids of states that are active: `a`, `a.b` for the value `{ a: 'b' }`. */
function activeStates(value: unknown, prefix = ''): string[] {
  const inside = (name: string) => (prefix === '' ? name : `${prefix}.${name}`);
  if (typeof value === 'string')
    return value.split('.').map((_, index, all) => inside(all.slice(0, index + 1).join('.')));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, below]) => [
    inside(name),
    ...activeStates(below, inside(name)),
  ]);
}

interface Shown {
  readonly graph: MachineGraph;
  readonly actor: ActorDetail;
}

/** A machine drawn from itself, with the state that is current; where no drawing can be made, an outline of the same facts. */
export function Statechart({ graph, actor }: Shown) {
  const active = new Set(activeStates(actor.state));
  return (
    <Careful otherwise={<p class="quiet">This machine cannot be drawn.</p>}>
      <ul class="outline" aria-label={`States of ${graph.name}`}>
        {graph.root.states.map((state) => (
          <State key={state.id} state={state} graph={graph} actor={actor} active={active} />
        ))}
      </ul>
    </Careful>
  );
}

function State({ state, graph, actor, active }: Shown & { state: StateNode; active: ReadonlySet<string> }) {
  const isActive = active.has(state.id);
  const out = graph.transitions.filter(({ from }) => from === state.id);
  const taken = (event: string, to: string) =>
    actor.taken
      .filter((one) => one.event === event && one.from.startsWith(state.id) && one.to.startsWith(to))
      .reduce((sum, { count }) => sum + count, 0);
  return (
    <li class={isActive ? 'active' : undefined} aria-current={isActive ? 'true' : undefined}>
      <span class="state">{state.name}</span>
      {state.kind !== 'atomic' && <span class="quiet"> {state.kind}</span>}
      {isActive && <strong> current</strong>}
      {out.length > 0 && (
        <ul class="transitions">
          {out.map(({ event, to, guard, delay, effects }) => {
            const times = taken(event, to);
            return (
              <li key={`${event} ${to} ${guard}`} class={times > 0 ? 'taken' : undefined}>
                <code>{delay ? `after ${delay}` : event}</code>
                {guard && <span class="quiet"> if {guard}</span>} → <span class="state">{to}</span>
                {effects.length > 0 && <span class="quiet"> / {effects.join(', ')}</span>}
                {times > 0 && <span class="times"> {counted(times, 'time')}</span>}
              </li>
            );
          })}
        </ul>
      )}
      {state.states.length > 0 && (
        <ul class="outline">
          {state.states.map((inner) => (
            <State key={inner.id} state={inner} graph={graph} actor={actor} active={active} />
          ))}
        </ul>
      )}
    </li>
  );
}

/** A picture that fails takes nothing with it. */
class Careful extends Component<{ otherwise: ComponentChildren; children: ComponentChildren }> {
  static override getDerivedStateFromError = () => ({ failed: true });
  override state: { failed?: boolean } = {};
  render() {
    return this.state.failed ? this.props.otherwise : this.props.children;
  }
}
