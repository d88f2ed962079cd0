import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import type { StoriesAnswer as Page, Story } from '../../api/types.ts';
import { useAnswer } from '../answer.ts';
import { get, withQuery } from '../api.ts';
import { Filters, filterQuery } from '../components/filters.tsx';
import { Rows } from '../components/rows.tsx';
import { Shown } from '../components/states.tsx';
import { addShortcuts } from '../keys.ts';
import { log, newest } from '../live.ts';
import { address, at, change, params, zoom } from '../location.ts';
import { counted, duration, Time } from '../text.tsx';

const PAGE = 100;
/** So many stories are listed at once, so that a long log does not fill the browser; then one goes on from the last. */
const MOST = 3_000;
/** Pixels; the style sheet has the same. */
const ROW = 44;

/** The place in the list stands in the address this long after it was reached, milliseconds. */
const SETTLED_MS = 200;

/** Where the list begins when its filters change: at the story that was on top, so that the place is kept. */
function useBegin(key: string): { begin: number | undefined; restart: (top?: number) => void } {
  const begin = useRef<{ key: string; top: number | undefined } | undefined>(undefined);
  if (begin.current?.key !== key) {
    const top = Number(params.value.get('top') ?? Number.NaN);
    begin.current = { key, top: Number.isSafeInteger(top) && top > 0 ? top : undefined };
  }
  const restart = (top?: number) => {
    begin.current = { key, top };
  };
  return { begin: begin.current.top, restart };
}

/** The stories, newest first; more of them when the end comes near. */
function useStories(isPaused: boolean) {
  const filters = { ...filterQuery(), ...zoom.value, at: at.value };
  const { begin, restart } = useBegin(withQuery('', filters));
  const query = { ...filters, limit: PAGE, before: begin === undefined ? undefined : begin + 1 };
  const answer = useAnswer<Page>('/api/stories', query, isPaused ? 'paused' : 'live');
  const [older, setOlder] = useState<readonly Story[]>([]);
  const [next, setNext] = useState<number | undefined>(undefined);
  const [asking, setAsking] = useState(false);
  const key = withQuery('', query);
  const current = useRef(key);
  current.current = key;
  useEffect(() => {
    setOlder([]);
    setNext(undefined);
  }, [key]);
  const from = older.length > 0 ? next : answer.data?.next;
  const more = useCallback(async () => {
    if (from === undefined || asking || older.length >= MOST) return;
    setAsking(true);
    try {
      const page = await get<Page>('/api/stories', { ...query, before: from });
      if (current.current !== key) return; // of other filters by now
      setOlder((known) => [...known, ...page.stories]);
      setNext(page.next);
    } finally {
      setAsking(false);
    }
  }, [from, asking, key, older.length]);
  const isFound = older.length + (answer.data?.stories.length ?? 0) > 0;
  useEffect(() => {
    // The instance answers a long search with what it has after a while, also with nothing: it goes on from there.
    if (!isFound && from !== undefined) void more();
  }, [isFound, from, more]);
  const fresh = answer.data?.stories ?? [];
  const known = new Set(fresh.map(({ id }) => id));
  return {
    ...{ answer, more, begin, restart },
    stories: [...fresh, ...older.filter(({ id }) => !known.has(id))],
    isSearching: !isFound && from !== undefined,
    /** The newest record of those that are not listed any more. */
    rest: older.length >= MOST && from !== undefined ? from - 1 : undefined,
  };
}

/** The log as what happened: one line a story, newest first. Whoever scrolls away looks at what stands still. */
export function StoriesPage() {
  const [isAway, setAway] = useState(params.value.has('top'));
  const [isInside, setInside] = useState(false);
  const [returns, setReturns] = useState(0);
  const isPaused = isAway || isInside;
  const { answer, stories, more, begin, restart, isSearching, rest } = useStories(isPaused);
  const pausedAt = useRef(newest.value);
  if (!isPaused) pausedAt.current = newest.value;
  const shown = useRef(stories);
  shown.current = stories;
  const settling = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(settling.current), []);
  const onScroll = (first: number) => {
    const away = first > 0 || begin !== undefined;
    setAway(away);
    clearTimeout(settling.current);
    settling.current = setTimeout(() => {
      // The rows of other filters may still be there; at the top of the list it is known where that begins.
      const top = first === 0 ? begin : shown.current[first]?.last;
      if (String(top) !== (params.value.get('top') ?? 'undefined')) change({ top });
    }, SETTLED_MS);
  };
  const follow = () => {
    clearTimeout(settling.current);
    restart();
    setAway(false);
    setInside(false);
    setReturns(returns + 1);
    if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
    change({ at: undefined, top: undefined });
  };
  const goOn = (top: number) => {
    clearTimeout(settling.current);
    restart(top);
    setReturns(returns + 1);
    change({ top });
  };
  useEffect(() => addShortcuts([{ keys: 'l', what: 'Back to now, live', run: follow }]), [returns, restart]);
  const missed = newest.value - (begin === undefined ? pausedAt.current : Math.min(begin, pausedAt.current));
  return (
    <>
      <h1 class="hidden">Stories</h1>
      <Filters fields={['text', 'actor', 'event']} />
      {isPaused && at.value === undefined && log.value?.mode === 'live' && (
        <p class="paused">
          <span role="status">paused, {missed.toLocaleString()} new</span>
          <button type="button" onClick={follow} title="Back to now, live (l)">
            Follow
          </button>
        </p>
      )}
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
          <div
            class="list"
            onFocusIn={(event) => setInside(event.target instanceof HTMLAnchorElement)}
            onFocusOut={() => setInside(false)}
          >
            <Rows
              rows={stories}
              height={ROW}
              keyOf={({ id }) => id}
              draw={draw}
              onEnd={() => void more()}
              onScroll={onScroll}
              topAt={`${returns} ${begin}`}
              label="Stories"
            />
            {rest !== undefined && (
              <p class="paused">
                <span>{stories.length.toLocaleString()} stories are listed.</span>
                <button type="button" onClick={() => goOn(rest)}>
                  Earlier stories
                </button>
              </p>
            )}
          </div>
        )}
      </Shown>
    </>
  );
}

function draw({ id, title, start, end, records, actors, failed, failure, first }: Story) {
  return (
    <a class={`story${failed ? ' failed' : ''}`} href={address(`/stories/${id}`)}>
      <Time ms={end} />
      <span class="title">
        <span class="actor">{actors[0]}</span> {failed && <strong>failed: </strong>}
        {failure ?? title}
        {failure && <span class="quiet"> began with: {title}</span>}
      </span>
      <span class="quiet">
        {counted(records, 'record')} in {duration(end - start)}, from {first}
      </span>
      <span class="quiet actors">{actors.length > 1 && `with ${actors.slice(1, 3).join(', ')}`}</span>
    </a>
  );
}
