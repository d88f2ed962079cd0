import type { ComponentChild } from 'preact';
import { useEffect } from 'preact/hooks';
import type { PagesAnswer } from '../api/types.ts';
import { lastAnswerAt, useAnswer } from './answer.ts';
import { post } from './api.ts';
import { COMMANDS } from './commands.ts';
import { AreaLinks, PagesOfArea } from './components/area-links.tsx';
import { ExportedPart } from './components/exported-part.tsx';
import { notice } from './cursor.ts';
import { addShortcuts } from './keys.ts';
import { connection, exported, log } from './live.ts';
import { address, at, go, path } from './location.ts';
import { ActorPage } from './pages/actor.tsx';
import { ActorsPage } from './pages/actors.tsx';
import { AreaPage } from './pages/area.tsx';
import { ComparePage } from './pages/compare.tsx';
import { HappenedPage } from './pages/happened.tsx';
import { NowPage } from './pages/now.tsx';
import { RecordPage } from './pages/record.tsx';
import { StoriesPage } from './pages/stories.tsx';
import { StoryPage } from './pages/story.tsx';
import { WhatIfPage } from './pages/what-if.tsx';
import { Help, Notebook, Palette } from './palette.tsx';
import { Time } from './text.tsx';
import { TimeBar } from './timebar.tsx';

/** Pages that there always are, with the key that leads to them. */
const PAGES = [
  { to: '/now', title: 'Now', keys: 'g n' },
  { to: '/happened', title: 'What happened', keys: 'g h' },
  { to: '/stories', title: 'Stories', keys: 'g s' },
  { to: '/actors', title: 'Actors', keys: 'g a' },
  { to: '/compare', title: 'Compare', keys: 'g c' },
  { to: '/what-if', title: 'What if', keys: 'g w' },
] as const;

function page(at: string, areas: PagesAnswer['pages']): ComponentChild {
  const [, first = '', ...rest] = at.split('/');
  const name = rest.join('/');
  if (first === '' || first === 'now') return <NowPage />;
  if (first === 'happened') return <HappenedPage />;
  if (first === 'stories') return name === '' ? <StoriesPage /> : <StoryPage id={name} key={name} />;
  if (first === 'actors') return name === '' ? <ActorsPage /> : <ActorPage id={name} key={name} />;
  if (first === 'records') return <RecordPage seq={Number(name)} key={name} />;
  if (first === 'compare') return <ComparePage />;
  if (first === 'what-if') return <WhatIfPage />;
  const area = areas.find((one) => first === 'area' && one.name === name);
  if (area)
    return (
      <>
        <PagesOfArea pages={areas.filter((one) => one.area === area.area)} />
        <AreaPage page={area} key={name} />
      </>
    );
  if (first === 'area' && areas.length === 0) return null; // they are on their way
  return (
    <p class="empty">
      There is no page {at}. <a href={address('/now')}>What is now</a>
    </p>
  );
}

const isShown = (to: string): boolean => path.value === to || path.value.startsWith(`${to}/`);

/** The session ends also where the answer does not come: then the login page says so. */
async function logout(): Promise<void> {
  await post('/api/logout', {}).catch(() => {});
  location.assign('/login');
}

/** Says that what is shown may be old, since when, and what to do. */
function Lost() {
  const known = lastAnswerAt.value;
  if (connection.value !== 'lost' && connection.value !== 'ended') return null;
  return (
    <p class="problem linked" role="alert">
      {connection.value === 'lost' ? (
        'The instance does not answer; the page tries again by itself.'
      ) : (
        <>
          This login has ended, as all do when the instance starts anew.{' '}
          <a href={`/login?next=${encodeURIComponent(location.pathname + location.search)}`} target="_self">
            Log in again
          </a>{' '}
          here or in another window: this page goes on by itself.
        </>
      )}{' '}
      What is shown was last known{' '}
      {known === 0 ? (
        'never'
      ) : (
        <>
          at <Time ms={known} />
        </>
      )}
      .
    </p>
  );
}

/** The frame of all pages: where one can go, which moment is shown, and the page. */
export function App() {
  const areas = useAnswer<PagesAnswer>('/api/pages', {}, 'fixed');
  const links = [
    ...PAGES,
    ...(areas.data?.pages ?? []).map(({ name, title }) => ({ to: `/area/${name}`, title })),
  ];
  useEffect(
    () =>
      addShortcuts([
        ...COMMANDS,
        ...PAGES.map(({ to, title, keys }) => ({ keys, what: title, run: () => go(address(to)) })),
      ]),
    [],
  );
  return (
    <div class={at.value === undefined ? 'app' : 'app then'}>
      <a class="skip" href="#page">
        To the page
      </a>
      <header>
        <a class="home" href={address('/now')}>
          Holdfast
        </a>
        <nav aria-label="Pages">
          {PAGES.map(({ to, title }) => (
            <a key={to} href={address(to)} aria-current={isShown(to) ? 'page' : undefined}>
              {title}
            </a>
          ))}
          <AreaLinks pages={areas.data?.pages ?? []} />
        </nav>
        <span class="quiet instance">
          {log.value?.mode === 'live'
            ? log.value.instance
            : log.value && !exported.value && 'a log that is not running'}
        </span>
        {log.value?.mode === 'live' && (
          <button type="button" onClick={() => void logout()}>
            Log out
          </button>
        )}
      </header>
      {exported.value && <ExportedPart facts={exported.value} />}
      <TimeBar />
      <Lost />
      <main id="page" tabIndex={-1}>
        {page(path.value, areas.data?.pages ?? [])}
      </main>
      <Palette links={links} />
      <Help />
      <Notebook />
      <output class={notice.value === '' ? 'notice hidden' : 'notice'}>{notice.value}</output>
    </div>
  );
}
