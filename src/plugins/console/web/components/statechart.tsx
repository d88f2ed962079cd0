import { Component, type ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ActorAnswer, MachineAnswer } from '../../api/types.ts';
import { counted } from '../text.tsx';
import { activeStates } from './transition.tsx';

interface Shown {
  readonly machine: MachineAnswer;
  readonly actor: ActorAnswer;
}

/** A machine drawn from itself, with the state that is current; beside it, or where there is no drawing, an outline of the same facts. */
export function Statechart({ machine, actor }: Shown) {
  const active = new Set(activeStates(actor.value));
  const outline = <Outline machine={machine} actor={actor} active={active} />;
  if (!machine.drawing) return outline;
  return (
    <Careful otherwise={outline}>
      <Drawn machine={machine} actor={actor} active={active} />
      <details>
        <summary>All of its transitions</summary>
        {outline}
      </details>
    </Careful>
  );
}

type WithActive = Shown & { readonly active: ReadonlySet<string> };

function Outline({ machine, actor, active }: WithActive) {
  return (
    <ul class="outline">
      <Ways from="" machine={machine} actor={actor} />
      {machine.states.map((state) => (
        <State key={state.id} state={state} machine={machine} actor={actor} active={active} />
      ))}
    </ul>
  );
}

function State({ state, machine, actor, active }: WithActive & { state: MachineAnswer['states'][number] }) {
  const isActive = active.has(state.id);
  return (
    <li class={isActive ? 'active' : undefined} aria-current={isActive ? 'true' : undefined}>
      <span class="state">{state.name}</span>
      {state.kind !== 'atomic' && <span class="quiet"> {state.kind}</span>}
      {isActive && <strong> current</strong>}
      <Ways from={state.id} machine={machine} actor={actor} />
      {state.states.length > 0 && (
        <ul class="outline">
          {state.states.map((inner) => (
            <State key={inner.id} state={inner} machine={machine} actor={actor} active={active} />
          ))}
        </ul>
      )}
    </li>
  );
}

/** The ways out of a state, with how often each was taken. */
function Ways({ from, machine, actor }: Shown & { from: string }) {
  const ways = machine.transitions.filter((one) => one.from === from);
  if (ways.length === 0) return null;
  return (
    <ul class="transitions">
      {ways.map(({ event, to, guard, delay, effects }) => {
        const times = timesTaken(actor, from, event, to);
        return (
          <li key={`${event} ${delay} ${to} ${guard}`}>
            <code>{delay === undefined ? event || 'at once' : `after ${delay}`}</code>
            {guard && <span class="quiet"> if {guard}</span>}
            {to !== from && (
              <>
                {' → '}
                <span class="state">{to}</span>
              </>
            )}
            {effects.length > 0 && <span class="quiet"> / {effects.join(', ')}</span>}
            {times > 0 && <span class="times"> {counted(times, 'time')}</span>}
          </li>
        );
      })}
    </ul>
  );
}

const isWithin = (state: string, around: string) =>
  around === '' || state === around || state.startsWith(`${around}.`) || state.includes(around);

function timesTaken({ taken }: ActorAnswer, from: string, event: string, to: string): number {
  return taken
    .filter((one) => one.event === event && isWithin(one.from ?? '', from) && isWithin(one.to, to))
    .reduce((sum, { count }) => sum + count, 0);
}

const ZOOMS = [0.5, 0.75, 1] as const;

function Drawn({ machine, actor, active }: WithActive) {
  const [zoom, setZoom] = useState(0.75);
  const box = useRef<HTMLElement>(null);
  const { drawing } = machine;
  const current = [...active].join(', ');
  useEffect(() => {
    // The innermost state that is active; a large machine begins with what matters of it.
    const node = [...(box.current?.querySelectorAll('.node.active') ?? [])].at(-1);
    node?.scrollIntoView({ block: 'nearest', inline: 'center' });
  }, [current, zoom]);
  if (!drawing) return null;
  const { width, height, states, transitions } = drawing;
  const last = actor.last;
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and keys reach what scrolls by its focus alone */}
      <section class="chart" ref={box} tabIndex={0} aria-label={`The statechart of ${machine.name}`}>
        <svg
          viewBox={`0 0 ${width} ${height}`}
          width={width * zoom}
          height={height * zoom}
          role="img"
          aria-label={`${machine.name}: ${states.length} states; current is ${current}`}
        >
          <title>{`${machine.name}, current: ${current}`}</title>
          <defs>
            <marker
              id="tip"
              viewBox="0 0 8 8"
              refX="7"
              refY="4"
              markerWidth="7"
              markerHeight="7"
              orient="auto-start-reverse"
            >
              <path d="M0 0 8 4 0 8z" />
            </marker>
          </defs>
          {states.map(({ id, name, kind, x, y, width: wide, height: tall, isInitial }) => (
            <g key={id} class={`node ${kind}${active.has(id) ? ' active' : ''}`}>
              <rect x={x} y={y} width={wide} height={tall} rx="6" />
              {kind === 'final' && <rect x={x + 3} y={y + 3} width={wide - 6} height={tall - 6} rx="4" />}
              {isInitial && <circle class="initial" cx={x} cy={y} r="4" />}
              <text x={x + 12} y={y + 19}>
                {name}
              </text>
            </g>
          ))}
          {transitions.map(({ from, to, points, label }) => {
            const isLast =
              last?.from !== undefined && isWithin(last.from, from) && isWithin(last.to ?? '', to);
            return (
              <g key={`${from} ${to}`} class={isLast ? 'way last' : 'way'}>
                <polyline points={points.map(({ x, y }) => `${x},${y}`).join(' ')} marker-end="url(#tip)" />
                {label.lines.map((line, index) => (
                  <text key={line} x={label.x + 3} y={label.y + 11 + index * 14}>
                    {line}
                  </text>
                ))}
              </g>
            );
          })}
        </svg>
      </section>
      <p class="actions">
        {ZOOMS.map((one) => (
          <button key={one} type="button" aria-pressed={zoom === one} onClick={() => setZoom(one)}>
            {one * 100} %
          </button>
        ))}
      </p>
    </>
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
