import type { HttpSurface } from '../../core/http/index.ts';
import type { MonitorContext } from '../../machines/push-monitor/shapes.ts';
import { BADGES, type Badge, badge } from './badge.ts';
import { kumaHeartbeats, kumaPage, type Numbered } from './kuma.ts';
import type { Monitors } from './monitors.ts';
import { indexPage, PAGE_HEADERS, statusPage } from './page.ts';
import { bars, DAY_MS } from './view.ts';

const BARS = 48;

/** The push endpoint and the read side. @param monitors there once a request comes */
export function monitorRoutes(http: HttpSurface, monitors: () => Monitors): void {
  // A push is its address alone: whatever body comes with it is read and left.
  http.addContentTypeParser('*', (_request, payload, done) => {
    payload
      .resume()
      .on('end', () => done(null))
      .on('error', done);
  });

  http.all<{ Params: { token: string }; Querystring: Record<string, unknown> }>(
    '/api/push/:token',
    async ({ params, query }, reply) => {
      const { status, body } = await monitors().take(params.token, query);
      if (body.reason === 'busy') reply.header('retry-after', '5');
      return reply.code(status).send(body);
    },
  );

  const notFound = { ok: false, msg: 'There is no status page of that name.' };
  http.get('/', (_request, reply) => reply.headers(PAGE_HEADERS).send(indexPage(monitors().pages())));

  http.get<{ Params: { slug: string } }>('/status/:slug', ({ params }, reply) => {
    const all = monitors();
    const json = params.slug.endsWith('.json') && !all.has(params.slug);
    const slug = json ? params.slug.slice(0, -'.json'.length) : params.slug;
    const { now } = all;
    const listed = all.of(slug);
    if (listed.length === 0) return reply.code(404).send(notFound);
    if (json) {
      const views = listed.map(({ view }) => view);
      return reply.send({ slug, at: new Date(now).toISOString(), monitors: views });
    }
    const shown = listed.map(({ view, state }) => {
      const { changes } = state.context as unknown as MonitorContext;
      return { view, bars: bars(changes, now - DAY_MS, now, BARS) };
    });
    return reply.headers(PAGE_HEADERS).send(statusPage(slug, shown, new Date(now).toISOString()));
  });

  http.get<{ Params: { slug: string } }>('/api/status-page/:slug', ({ params: { slug } }, reply) => {
    const listed: readonly Numbered[] = monitors().of(slug);
    return listed.length === 0 ? reply.code(404).send(notFound) : reply.send(kumaPage(slug, listed));
  });

  http.get<{ Params: { slug: string } }>(
    '/api/status-page/heartbeat/:slug',
    ({ params: { slug } }, reply) => {
      const all = monitors();
      const listed = all.of(slug);
      if (listed.length === 0) return reply.code(404).send(notFound);
      return reply.send(kumaHeartbeats(listed, all.beats));
    },
  );

  http.get<{ Params: { name: string; kind: string } }>('/api/badge/:name/:kind', ({ params }, reply) => {
    const found = monitors().find(params.name);
    if (!found || !BADGES.includes(params.kind as Badge)) {
      return reply.code(404).send({ ok: false, msg: 'There is no such badge.' });
    }
    const policy = "default-src 'none'; style-src 'unsafe-inline'";
    return reply
      .headers({ 'content-type': 'image/svg+xml; charset=utf-8', 'content-security-policy': policy })
      .send(badge(params.kind as Badge, found.view));
  });
}
