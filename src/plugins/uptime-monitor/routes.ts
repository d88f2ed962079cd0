import type { HttpSurface } from '../../core/host/http/contract.ts';
import {
  BADGES,
  type Badge,
  badge,
  kumaHeartbeats,
  kumaPage,
  type Numbered,
  pageBadge,
  unknownBadge,
} from './kuma.ts';
import type { Monitors } from './monitors.ts';
import { indexPage, PAGE_HEADERS, statusPage } from './page.ts';
import { bars, DAY_MS } from './view.ts';

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
    async ({ params, query }, reply) => {
      const { status, body } = await monitors.take(params.token, query);
      if (body.reason === 'busy') reply.header('retry-after', '5');
      return reply.code(status).send(body);
    },
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
    ({ params: { slug } }, reply) => {
      const listed = pageOf(slug);
      if (listed.length === 0) return reply.code(404).send(notFound);
      return reply.send(kumaHeartbeats(listed, monitors.beats));
    },
  );

  http.get<{ Params: { slug: string } }>('/api/status-page/:slug/badge', ({ params: { slug } }, reply) => {
    const views = pageOf(slug).map(({ view }) => view);
    return reply
      .headers(BADGE_HEADERS)
      .send(views.length === 0 ? unknownBadge(slug) : pageBadge(slug, views));
  });

  // Uptime Kuma's badges take any number of hours; here only the last day is known for certain.
  http.get<{ Params: { monitor: string; kind: string; time?: string } }>(
    '/api/badge/:monitor/:kind/:time?',
    ({ params: { monitor, kind, time = '24' } }, reply) => {
      if (!BADGES.includes(kind as Badge) || !/^(?:24h?|1d)$/.test(time)) {
        return reply.code(404).send({ ok: false, status: 'fail', msg: 'Badge Not Found' });
      }
      const found = monitors.find(monitor) ?? monitors.numbered(Number(monitor));
      return reply.headers(BADGE_HEADERS).send(found ? badge(kind as Badge, found.view) : unknownBadge(kind));
    },
  );
}
