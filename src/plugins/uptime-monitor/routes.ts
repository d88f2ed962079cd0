import type { HttpSurface } from '../../core/host/http/contract.ts';
import { BADGES, type Badge, badge, badgeTexts, pageBadge, periodOf, unknownBadge } from './badges.ts';
import { kumaHeartbeats, kumaPage, type Numbered } from './kuma.ts';
import type { Monitors } from './monitors.ts';
import { indexPage, PAGE_HEADERS, statusPage } from './page.ts';
import { bars, DAY_MS, stateOf } from './spells.ts';

const BARS = 48;
const BADGE_HEADERS = {
  'content-type': 'image/svg+xml; charset=utf-8',
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'",
  'cache-control': 'max-age=30',
};

/** The push endpoint and the pages. */
export function monitorRoutes(http: HttpSurface, monitors: Monitors): void {
  // A push is its address alone: a body is read and ignored.
  http.addContentTypeParser('*', (_request, payload, done) => {
    payload
      .resume()
      .on('end', () => done(null))
      .on('error', done);
  });

  http.all<{ Params: { token: string }; Querystring: Record<string, unknown> }>(
    '/api/push/:token',
    {
      config: {
        credential: 'open',
        writes: { types: 'any', because: 'a push is its address, whose token no other page knows' },
      },
    },
    async ({ params, query }, reply) => {
      const { status, body } = await monitors.take(params.token, query);
      if (body.reason === 'busy') reply.header('retry-after', '5');
      return reply.code(status).send(body);
    },
  );

  // Uptime Kuma answers this address with its page. That is no `{"ok":true}`: no beat was taken.
  http.get('/api/push/:token/', (_request, reply) =>
    reply.headers(PAGE_HEADERS).send(indexPage(monitors.pages())),
  );

  // Clients of Uptime Kuma read the field `status`.
  const notFound = { ok: false, status: 'fail', msg: 'Status Page Not Found' };
  http.get('/', (_request, reply) => reply.headers(PAGE_HEADERS).send(indexPage(monitors.pages())));

  http.get<{ Params: { slug: string } }>('/status/:slug', ({ params }, reply) => {
    const requested = params.slug.toLowerCase();
    const json = requested.endsWith('.json') && !monitors.has(requested);
    const slug = json ? requested.slice(0, -'.json'.length) : requested;
    const { now } = monitors;
    const listed = monitors.of(slug);
    if (listed.length === 0) return reply.code(404).send(notFound);
    if (json) {
      const views = listed.map(({ view }) => view);
      return reply.send({ slug, at: new Date(now).toISOString(), monitors: views });
    }
    const shown = listed.map(({ view, state }) => ({
      view,
      bars: bars(state.context.changes, now - DAY_MS, now, BARS),
    }));
    return reply.headers(PAGE_HEADERS).send(statusPage(slug, shown, new Date(now).toISOString()));
  });

  const pageOf = (slug: string): readonly Numbered[] => monitors.of(slug.toLowerCase());

  http.get<{ Params: { slug: string } }>('/api/status-page/:slug', ({ params: { slug } }, reply) => {
    const listed = pageOf(slug);
    return listed.length === 0
      ? reply.code(404).send(notFound)
      : reply.send(kumaPage(slug.toLowerCase(), listed));
  });

  http.get<{ Params: { slug: string } }>(
    '/api/status-page/heartbeat/:slug',
    // As with Uptime Kuma, the heartbeats of a page that does not exist are none.
    ({ params: { slug } }) => kumaHeartbeats(pageOf(slug), (name) => monitors.beats.list(name)),
  );

  http.get<{ Params: { slug: string } }>('/api/status-page/:slug/badge', ({ params, query }, reply) => {
    const states = pageOf(params.slug).map(({ view }) => view.state);
    return reply.headers(BADGE_HEADERS).send(pageBadge(states, badgeTexts.parse(query)));
  });

  http.get<{ Params: { monitor: string; kind: string; duration?: string } }>(
    '/api/badge/:monitor/:kind/:duration?',
    ({ params: { monitor, kind, duration = '24' }, query }, reply) => {
      const period = periodOf(duration);
      if (!isBadge(kind) || !period) {
        return reply.code(404).send({ ok: false, status: 'fail', msg: 'Badge Not Found' });
      }
      const found = monitors.find(monitor) ?? monitors.numbered(Number(monitor));
      if (!found) return reply.headers(BADGE_HEADERS).send(unknownBadge());
      const { state } = found;
      const source = { state: stateOf(state), context: state.context, now: monitors.now };
      return reply.headers(BADGE_HEADERS).send(badge(kind, source, period, badgeTexts.parse(query)));
    },
  );
}

function isBadge(kind: string): kind is Badge {
  return BADGES.some((each) => each === kind);
}
