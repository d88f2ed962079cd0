import type { HappenedAnswer } from '../../api/types.ts';
import { useAnswer } from '../answer.ts';
import { Shown } from '../components/states.tsx';
import { address, at } from '../location.ts';
import { counted, Time } from '../text.tsx';

type Happening = HappenedAnswer['happened'][number];

/** Lines on the first page: of a running instance it does not scroll on a laptop; a log that is looked at begins here. */
const BRIEF = 6;
const FULL = 30;

const useHappened = (limit: number) => useAnswer<HappenedAnswer>('/api/happened', { at: at.value, limit });

/** The newest of what happened, on the first page. @param isBrief a line each, in few words */
export function HappenedCard({ isBrief = false }: { isBrief?: boolean }) {
  const answer = useHappened(isBrief ? BRIEF : FULL);
  return (
    <section class="card recent" aria-label="What happened">
      <h2>What happened</h2>
      <Shown
        of={answer}
        isEmpty={({ happened }) => happened.length === 0}
        empty="Nothing failed or was refused, and nobody did anything."
      >
        {({ happened, more }) => (
          <>
            {isBrief ? <Brief happened={happened} /> : <List happened={happened} />}
            <a href={address('/happened')}>{more > 0 ? `All of it: ${more} more` : 'All of it'}</a>
          </>
        )}
      </Shown>
    </section>
  );
}

/** What went wrong and what people did, newest first; what is alike as one line. */
export function HappenedPage() {
  const answer = useHappened(500);
  return (
    <>
      <h1>What happened</h1>
      <Shown
        of={answer}
        isEmpty={({ happened }) => happened.length === 0}
        empty="Nothing failed or was refused until this moment, and nobody did anything."
      >
        {({ happened, since, more }) => (
          <section class="card">
            <List happened={happened} />
            {more > 0 && <p class="quiet">{counted(more, 'line')} more.</p>}
            {since !== undefined && (
              <p class="quiet">
                What came before <Time ms={since} /> was not looked at: go back in time to see it.
              </p>
            )}
          </section>
        )}
      </Shown>
    </>
  );
}

function Brief({ happened }: { happened: readonly Happening[] }) {
  return (
    <ul class="latest">
      {happened.map(({ text, actor, count, last, end, lasts }) => (
        <li key={last} class={lasts ? 'failed' : undefined} title={`${actor} ${text}`}>
          <a href={address(`/records/${last}`, { at: last })}>
            <Time ms={end} />
          </a>{' '}
          {lasts && <strong>lasts: </strong>}
          {text}
          {count > 1 && <span class="quiet"> {count.toLocaleString()} times</span>}
        </li>
      ))}
    </ul>
  );
}

const KINDS = { problem: 'failed', act: 'done by hand', life: 'Holdfast' } as const;

function List({ happened }: { happened: readonly Happening[] }) {
  return (
    <ol class="happened">
      {happened.map(({ text, actor, kind, count, first, last, start, end, lasts }) => (
        <li key={last} class={lasts ? 'lasts' : undefined}>
          <span class="when">
            <a href={address(`/records/${last}`, { at: last })}>
              <Time ms={end} />
            </a>
          </span>
          <span>
            {lasts && <strong class="status failing">lasts </strong>}
            <span class="quiet">{lasts === false ? 'over' : lasts ? '' : KINDS[kind]}</span>{' '}
            <a class="actor" href={address(`/actors/${actor}`)}>
              {actor}
            </a>{' '}
            {text}
            {count > 1 && (
              <span class="quiet">
                {' '}
                {count.toLocaleString()} times since{' '}
                <a href={address(`/records/${first}`, { at: first })}>
                  <Time ms={start} />
                </a>
              </span>
            )}
          </span>
        </li>
      ))}
    </ol>
  );
}
