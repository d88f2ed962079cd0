import { useCallback, useEffect, useState } from 'preact/hooks';
import type { StoriesAnswer as Page, Story } from '../../api/types.ts';
import { type Answer, useAnswer } from '../answer.ts';
import { get, withQuery } from '../api.ts';
import { Filters, filterQuery } from '../components/filters.tsx';
import { Rows } from '../components/rows.tsx';
import { Shown } from '../components/states.tsx';
import { address, at } from '../location.ts';
import { counted, duration, Time } from '../text.tsx';

const PAGE = 100;
/** Pixels; the style sheet has the same. */
const ROW = 44;

/** The stories, newest first; more of them when the end comes near. */
function useStories(): {
  answer: Answer<Page>;
  stories: readonly Story[];
  more: () => Promise<void>;
  isSearching: boolean;
} {
  const query = {
    ...filterQuery(),
    limit: PAGE,
    ...(at.value !== undefined && { before: at.value + 1, at: at.value }),
  };
  const answer = useAnswer<Page>('/api/stories', query);
  const [older, setOlder] = useState<readonly Story[]>([]);
  const [next, setNext] = useState<number | undefined>(undefined);
  const [asking, setAsking] = useState(false);
  const key = withQuery('', query);
  useEffect(() => {
    setOlder([]);
    setNext(undefined);
  }, [key]);
  const from = older.length > 0 ? next : answer.data?.next;
  const more = useCallback(async () => {
    if (from === undefined || asking) return;
    setAsking(true);
    try {
      const page = await get<Page>('/api/stories', { ...filterQuery(), limit: PAGE, before: from });
      setOlder((known) => [...known, ...page.stories]);
      setNext(page.next);
    } finally {
      setAsking(false);
    }
  }, [from, asking]);
  const isFound = older.length + (answer.data?.stories.length ?? 0) > 0;
  useEffect(() => {
    // The instance answers a long search with what it has after a while, also with nothing: it goes on from there.
    if (!isFound && from !== undefined) void more();
  }, [isFound, from, more]);
  const fresh = answer.data?.stories ?? [];
  const known = new Set(fresh.map(({ id }) => id));
  return {
    answer,
    stories: [...fresh, ...older.filter(({ id }) => !known.has(id))],
    more,
    isSearching: !isFound && from !== undefined,
  };
}

/** The log as what happened: one line a story, newest first. */
export function StoriesPage() {
  const { answer, stories, more, isSearching } = useStories();
  return (
    <>
      <h1 class="hidden">Stories</h1>
      <Filters fields={['text', 'actor', 'event']} />
      <Shown
        of={answer}
        isEmpty={() => stories.length === 0}
        empty={
          isSearching
            ? 'Searching earlier records …'
            : 'No story has all of this. Take a filter away, or look at another moment.'
        }
      >
        {() => (
          <Rows
            rows={stories}
            height={ROW}
            keyOf={({ id }) => id}
            draw={draw}
            onEnd={() => void more()}
            label="Stories"
          />
        )}
      </Shown>
    </>
  );
}

function draw({ id, title, start, end, records, actors, failed, first }: Story) {
  return (
    <a class={`story${failed ? ' failed' : ''}`} href={address(`/stories/${id}`)}>
      <Time ms={end} />
      <span class="title">
        <span class="actor">{actors[0]}</span> {failed && <strong>failed: </strong>}
        {title}
      </span>
      <span class="quiet">
        {counted(records, 'record')} in {duration(end - start)}, from {first}
      </span>
      <span class="quiet actors">{actors.length > 1 && `with ${actors.slice(1, 3).join(', ')}`}</span>
    </a>
  );
}
