import { useEffect } from 'preact/hooks';
import { Lanes } from '../components/lanes.tsx';
import { RecordLine } from '../components/record-line.tsx';
import { Rows } from '../components/rows.tsx';
import { Shown } from '../components/states.tsx';
import { addShortcuts } from '../keys.ts';
import { at, travel } from '../location.ts';
import { counted, duration } from '../text.tsx';
import { useWholeStory } from '../whole-story.ts';

/** One story: its lanes on a time axis, and its records. */
export function StoryPage({ id }: { id: string }) {
  const answer = useWholeStory(id);
  const records = answer.data?.records ?? [];
  useEffect(() => {
    const step = (direction: 1 | -1) => () => {
      const seq = at.value ?? Number.POSITIVE_INFINITY;
      const to =
        direction === 1 ? records.find((one) => one.seq > seq) : records.findLast((one) => one.seq < seq);
      if (to) travel(to.seq);
    };
    return addShortcuts([
      { keys: '.', what: 'Next record of this story', run: step(1) },
      { keys: ',', what: 'Previous record of this story', run: step(-1) },
    ]);
  }, [records]);
  return (
    <Shown of={answer}>
      {(story) => {
        const first = story.records[0];
        const last = story.records.at(-1);
        return (
          <>
            <h1>
              {story.title}{' '}
              <span class="quiet">
                {counted(story.records.length, 'record')}
                {first && last && ` in ${duration(last.time - first.time)}`}
                {story.next !== undefined && ', and more'}
              </span>
            </h1>
            <Lanes story={story} />
            <h2 class="hidden">Records</h2>
            <Rows
              rows={story.records}
              height={26}
              keyOf={({ seq }) => seq}
              focus={story.records.findIndex(({ seq }) => seq === at.value)}
              draw={(row) => <RecordLine row={row} current={row.seq === at.value} />}
              label="Records of this story"
            />
          </>
        );
      }}
    </Shown>
  );
}
