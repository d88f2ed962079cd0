import { useEffect, useRef, useState } from 'preact/hooks';
import type { StoryAnswer } from '../api/types.ts';
import { type Answer, useAnswer } from './answer.ts';
import { get } from './api.ts';

/** Records of one story that are drawn and listed. */
const MOST = 20_000;

/** A story with the parts that come after its first one; what is there is shown meanwhile. */
export function useWholeStory(id: string): Answer<StoryAnswer> {
  const path = `/api/stories/${encodeURIComponent(id)}`;
  const answer = useAnswer<StoryAnswer>(path);
  const known = useRef<StoryAnswer | undefined>(undefined);
  const [, redraw] = useState(0);
  const first = answer.data;
  useEffect(() => {
    if (first?.next === undefined) {
      known.current = undefined;
      return undefined;
    }
    const gone = new AbortController();
    const goOn = async (): Promise<void> => {
      // The first part is full, so it stays as it is: a story that grows gets only what is new.
      let story = known.current ?? first;
      do {
        const after = story.records.at(-1)?.seq;
        story = joined(story, await get<StoryAnswer>(path, { after }, gone.signal));
        if (gone.signal.aborted) return;
        known.current = story;
        redraw((count) => count + 1);
      } while (story.next !== undefined && story.records.length < MOST);
    };
    // What did not come is asked for again with the next pulse.
    goOn().catch(() => {});
    return () => gone.abort();
  }, [first, path]);
  const whole = first?.next === undefined ? undefined : known.current;
  return whole ? { ...answer, data: whole } : answer;
}

/** A part of a story and the part behind it, which also says how effects of the first one ended. */
function joined(story: StoryAnswer, { records, spans, ends, next }: StoryAnswer): StoryAnswer {
  if (records.length === 0) return story;
  const ended = new Map(ends.map(({ id, ...end }) => [id, end]));
  const { next: _, ...rest } = story;
  return {
    ...rest,
    records: [...story.records, ...records],
    spans: [...story.spans.map((span) => ({ ...span, ...ended.get(span.id) })), ...spans],
    ...(next !== undefined && { next }),
  };
}
