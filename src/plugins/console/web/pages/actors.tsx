import type { ActorLine, ActorsAnswer as Page } from '../../api/types.ts';
import { useAnswer } from '../answer.ts';
import { SearchField } from '../components/filters.tsx';
import { Rows } from '../components/rows.tsx';
import { Shown } from '../components/states.tsx';
import { address, at, params } from '../location.ts';
import { Time } from '../text.tsx';

const MOST = 500;

/** Every actor with its state and the last that it heard. */
export function ActorsPage() {
  const text = params.value.get('text') ?? undefined;
  const answer = useAnswer<Page>('/api/actors', { at: at.value, text, limit: MOST });
  return (
    <>
      <h1 class="hidden">Actors</h1>
      <search>
        <form class="filters" onSubmit={(event) => event.preventDefault()}>
          <SearchField name="text" label="Name or state" hint="name or state" />
        </form>
      </search>
      <Shown
        of={answer}
        isEmpty={({ actors }) => actors.length === 0}
        empty="No actor of this name at this moment."
      >
        {({ actors, next }) => (
          <>
            <Rows rows={actors} height={30} keyOf={({ id }) => id} draw={draw} label="Actors" />
            {next !== undefined && (
              <p class="quiet">The first {MOST}; type a part of the name to see others.</p>
            )}
          </>
        )}
      </Shown>
    </>
  );
}

function draw({ id, plugin, state, lastTime, lastEvent, lastSeq }: ActorLine) {
  return (
    <span class="line">
      <a class="actor" href={address(`/actors/${id}`)}>
        {id}
      </a>
      <span class="state">{state}</span>
      <span class="event">{lastEvent}</span>
      <a class="seq" href={address(`/records/${lastSeq}`, { at: lastSeq })}>
        {lastSeq}
      </a>
      <Time ms={lastTime} />
      <span class="quiet">{plugin}</span>
    </span>
  );
}
