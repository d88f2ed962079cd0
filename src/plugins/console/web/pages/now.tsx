import type { OverviewAnswer } from '../../api/types.ts';
import { useAnswer } from '../answer.ts';
import { RateChart } from '../components/rate-chart.tsx';
import { Shown, StatusMark } from '../components/states.tsx';
import { Due } from '../components/transition.tsx';
import { log } from '../live.ts';
import { address, at } from '../location.ts';
import { bytes, counted, Time } from '../text.tsx';
import { HappenedCard } from './happened.tsx';

type Item = OverviewAnswer['items'][number];

const WORST = ['failing', 'degraded', 'unknown', 'ok'] as const;

/** The worst first, so that what matters is seen without a search. */
function sorted(items: readonly Item[]): Item[] {
  return items.toSorted((a, b) => WORST.indexOf(a.status) - WORST.indexOf(b.status));
}

/** Is everything well, and if not: what, since when, and what is being done. */
export function NowPage() {
  const answer = useAnswer<OverviewAnswer>('/api/overview', { at: at.value });
  return (
    <Shown of={answer}>
      {({ status, items, time, perMinute }) => {
        const isKept = log.value !== undefined && log.value.mode !== 'live';
        const wrong = sorted(items.filter((item) => item.status !== 'ok'));
        const ending = items.filter(({ due }) => due !== undefined);
        const facts = items.filter(
          (one) => one.kind === 'fact' && one.due === undefined && one.status === 'ok',
        );
        return (
          <div class="now">
            <h1 class="linked">
              <StatusMark status={status} /> {status === 'ok' ? 'Everything is well' : summary(wrong)}
              <span class="quiet">
                {' '}
                <Time ms={time} />
              </span>
            </h1>
            {wrong.length > 0 && <Wrong items={wrong} />}
            {ending.length > 0 && <Ending items={ending} time={time} />}
            {isKept && <HappenedCard />}
            <div class="cards">
              {[...Map.groupBy(facts, ({ area }) => area)].map(([area, own]) => (
                <Card key={area} title={area} items={own} />
              ))}
              <LogCard items={items} perMinute={perMinute} />
              <Surfaces items={items.filter(({ kind }) => kind === 'surface')} />
              <Plugins items={items.filter(({ kind }) => kind === 'plugin')} />
              <section class="card">
                <h2>Records a minute</h2>
                <RateChart end={time} />
              </section>
              {!isKept && <HappenedCard isBrief />}
            </div>
          </div>
        );
      }}
    </Shown>
  );
}

/** What is not well, and what is being done about each. */
function Wrong({ items }: { items: readonly Item[] }) {
  return (
    <section class="card wrong" aria-label="What is not well">
      <ul>
        {items.map((item) => (
          <li key={`${item.kind} ${item.name} ${item.seq}`} class="item">
            <StatusMark status={item.status} />
            <span>
              <Name item={item} /> <span>{item.text}</span> <Since item={item} />
              <span class="doing">
                {item.doing ?? <span class="quiet">Nothing is being done about it at this moment.</span>}
              </span>
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** What ends by itself at a time, such as a change that is not committed. */
function Ending({ items, time }: { items: readonly Item[]; time: number }) {
  return (
    <section class="card pending" aria-label="What is pending">
      <ul>
        {items.map(({ name, text, due, ...item }) => (
          <li key={name} class="item">
            <strong>
              <Name item={{ ...item, name, text }} />
            </strong>
            <span>
              {text}{' '}
              {due !== undefined && (
                <strong class="due">
                  <Due due={due} then={time} />
                </strong>
              )}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** A fact's name in words: `columnar_backups` and `reconcilerPush` are those of an API. */
function inWords(name: string): string {
  return name
    .replaceAll('_', ' ')
    .replaceAll(/([a-z])([A-Z])/g, (_, a: string, b: string) => `${a} ${b.toLowerCase()}`);
}

function Name({ item: { name, actor } }: { item: Item }) {
  return actor ? <a href={address(`/actors/${actor}`)}>{name}</a> : <b>{inWords(name)}</b>;
}

function Since({ item: { since, seq } }: { item: Item }) {
  if (since === undefined) return null;
  return (
    <span class="quiet">
      since{' '}
      {seq === undefined ? (
        <Time ms={since} />
      ) : (
        <a href={address(`/records/${seq}`, { at: seq })}>
          <Time ms={since} />
        </a>
      )}
    </span>
  );
}

function Card({ title, items }: { title: string; items: readonly Item[] }) {
  return (
    <section class="card">
      <h2>{title}</h2>
      <ul>
        {sorted(items).map((item) => (
          <li key={item.name} class="item">
            <StatusMark status={item.status} />
            <span>
              <Name item={item} /> <span class="quiet">{item.text}</span> <Since item={item} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The log: how fast it grows, whether all of it is durable, and how large it is. */
function LogCard({ items, perMinute }: { items: readonly Item[]; perMinute: number }) {
  const item = items.find(({ kind }) => kind === 'log');
  return (
    <section class="card">
      <h2>Log</h2>
      <ul>
        {item && (
          <li class="item">
            <StatusMark status={item.status} />
            <span class="quiet">{item.text}</span>
          </li>
        )}
        <li class="numbers">
          <span>
            <strong>{perMinute.toLocaleString()}</strong> a minute
          </span>
          {log.value && at.value === undefined && (
            <span>
              <strong>{bytes(log.value.bytes)}</strong> on disk
            </span>
          )}
        </li>
      </ul>
    </section>
  );
}

function Surfaces({ items }: { items: readonly Item[] }) {
  if (items.length === 0) return null;
  return (
    <section class="card">
      <h2>Surfaces: {items.length} listen</h2>
      <dl class="surfaces">
        {items.map(({ name, text }) => (
          <div key={name}>
            <dt>{inWords(name)}</dt>
            <dd>
              <code>{text.replace('http://', '')}</code>
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function Plugins({ items }: { items: readonly Item[] }) {
  if (items.length === 0) return null;
  const started = items.filter(({ status }) => status === 'ok').length;
  const name = ({ name: full }: Item) => full.replace(/^plugin /, '');
  return (
    <section class="card">
      <h2>
        Plugins: {started} of {items.length} started
      </h2>
      <p class="quiet names">
        {sorted(items).map((item) => (
          <span key={item.name}>
            {item.status === 'ok' ? name(item) : <strong>{`${name(item)}: ${item.text}`}</strong>}
          </span>
        ))}
      </p>
    </section>
  );
}

function summary(wrong: readonly Item[]): string {
  const [worst] = wrong;
  if (!worst) return 'Not everything is known';
  if (worst.status === 'unknown') return 'Nothing is known to be wrong, but not everything was looked at';
  const more = wrong.length > 1 ? `, and ${counted(wrong.length - 1, 'thing')} more` : '';
  // The list below has the rest: labels of an alert, and what to do.
  const name = worst.name.replace(/\{.*$/, '');
  const [sentence = ''] = worst.text.split(/[.;](?:\s|$)/);
  return `${inWords(name)}: ${sentence}${more}`;
}
