import type { OverviewAnswer } from '../../api/types.ts';
import { useAnswer } from '../answer.ts';
import { RateChart } from '../components/rate-chart.tsx';
import { RecordLine } from '../components/record-line.tsx';
import { Shown, StatusMark } from '../components/states.tsx';
import { latest, log } from '../live.ts';
import { address, at } from '../location.ts';
import { Time } from '../text.tsx';

type OverviewItem = OverviewAnswer['items'][number];

const WORST = ['failing', 'degraded', 'unknown', 'ok'] as const;

/** The worst first, so that what matters is seen without a search. */
function sorted(items: readonly OverviewItem[]): OverviewItem[] {
  return items.toSorted((a, b) => WORST.indexOf(a.status) - WORST.indexOf(b.status));
}

function Card({ area, items }: { area: string; items: readonly OverviewItem[] }) {
  return (
    <section class="card">
      <h2>{area}</h2>
      <ul>
        {sorted(items).map(({ name, status, text, since, actor, seq }) => (
          <li key={`${name} ${actor} ${seq}`} class="item">
            <StatusMark status={status} />
            <span class="what" title={text}>
              {actor ? <a href={address(`/actors/${actor}`)}>{name}</a> : name}
              <span class="quiet"> {text}</span>
              {since !== undefined && (
                <span class="quiet">
                  {' '}
                  since{' '}
                  {seq === undefined ? (
                    <Time ms={since} />
                  ) : (
                    <a href={address(`/records/${seq}`, { at: seq })}>
                      <Time ms={since} />
                    </a>
                  )}
                </span>
              )}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Is everything well, and if not: what, since when, and what is being done. */
export function NowPage() {
  const answer = useAnswer<OverviewAnswer>('/api/overview', { at: at.value });
  return (
    <Shown of={answer}>
      {({ status, items, time }) => {
        const areas = Map.groupBy(items, ({ area }) => area);
        const not = items.filter((item) => item.status !== 'ok');
        return (
          <div class="now">
            <h1 class="linked">
              <StatusMark status={status} /> {status === 'ok' ? 'Everything is well' : summary(not)}
              <span class="quiet">
                {' '}
                <Time ms={time} />
              </span>
            </h1>
            <div class="cards">
              {[...areas].map(([area, own]) => (
                <Card key={area} area={area} items={own} />
              ))}
              <section class="card wide">
                <h2>Records a minute</h2>
                <RateChart end={time} />
              </section>
              {at.value === undefined && log.value?.mode === 'live' && (
                <section class="card wide">
                  <h2>What happens</h2>
                  {latest.value.length === 0 && <p class="quiet">Nothing since this page was opened.</p>}
                  <ul class="latest">
                    {latest.value
                      .slice(-6)
                      .toReversed()
                      .map((row) => (
                        <li key={row.seq}>
                          <RecordLine row={row} />
                        </li>
                      ))}
                  </ul>
                </section>
              )}
            </div>
          </div>
        );
      }}
    </Shown>
  );
}

function summary(items: readonly OverviewItem[]): string {
  const [worst] = sorted(items);
  if (!worst) return 'Not everything is known';
  const more = items.length > 1 ? `, and ${items.length - 1} more` : '';
  // The card has the rest: labels of an alert, and what to do.
  const name = worst.name.replace(/\{.*$/, '');
  const [sentence = ''] = worst.text.split(/\.(?:\s|$)/);
  return `${name}: ${sentence}${more}`;
}
