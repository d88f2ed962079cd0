/** The page of a signed link: what is asked, and a form. Only the form decides, so that a program that opens links does not. */
import { hash } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import type { HttpSurface } from '../../../core/host/http/contract.ts';
import { escapeMarkup } from '../../../core/host/http/html.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { type ApprovalLinks, PAGE_PATH } from './link.ts';
import { type ApprovalServices, decide, findView } from './operations.ts';
import { type ApprovalView, LONGEST_WHY, stateText } from './view.ts';

const LARGEST_FORM = 8_192;
const FORM_TYPE = 'application/x-www-form-urlencoded';
const BY = 'signed link';

const STYLE = `
:root{color-scheme:light dark}
body{margin:0 auto;max-width:44rem;padding:1.5rem 1rem;font:1rem/1.5 system-ui,sans-serif}
pre{white-space:pre-wrap;overflow-wrap:anywhere;border:1px solid;padding:.75rem}
input{width:100%;box-sizing:border-box;font:inherit;padding:.4rem}button{font:inherit;padding:.5rem 1.25rem;margin:.75rem .75rem 0 0}
`;

/**
 * Nothing is loaded, nothing runs, and no other page may show it. The address holds the token: it goes to no other origin as
 * referrer; with `no-referrer` browsers would say `Origin: null` of the form, which is refused.
 */
const HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': `default-src 'none'; style-src 'sha256-${hash('sha256', STYLE, 'base64')}'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'`,
  'referrer-policy': 'same-origin',
  'cache-control': 'no-store',
};

const form = z.strictObject({
  verdict: z.enum(['approved', 'denied']),
  why: z.string().trim().min(1).max(LONGEST_WHY),
});

interface PageServices extends ApprovalServices {
  readonly approvalLinks: ApprovalLinks;
}

/** Serves the page of each request, to who has its link. */
export function approvalPages(http: HttpSurface, gateway: PageServices): void {
  const { approvalLinks } = gateway;
  /** @throws HF_GATEWAY_APPROVAL_LINK, HF_GATEWAY_APPROVAL_UNKNOWN */
  const requestOf = async (params: unknown, query: unknown): Promise<ApprovalView> => {
    const { id } = params as { id: string };
    approvalLinks.check(id, (query as { token?: unknown }).token);
    return findView(gateway, id);
  };
  http.register((scope, _options, registered) => {
    scope.addContentTypeParser(
      FORM_TYPE,
      { parseAs: 'string', bodyLimit: LARGEST_FORM },
      (_request, body, done) => done(null, Object.fromEntries(new URLSearchParams(String(body)))),
    );
    scope.get(`${PAGE_PATH}/:id`, { exposeHeadRoute: false }, ({ params, query }, reply) =>
      answer(reply, async () => ({ status: 200, html: requestPage(await requestOf(params, query)) })),
    );
    scope.post(
      `${PAGE_PATH}/:id`,
      { config: { writes: { types: [FORM_TYPE], because: 'it is the form of a page without scripts' } } },
      ({ params, query, body, id }, reply) =>
        answer(reply, async () => {
          const view = await requestOf(params, query);
          const { data } = form.safeParse(body);
          if (!data) return { status: 400, html: requestPage(view, 'Give a reason, and approve or deny.') };
          const decided = await decide(gateway, { id: view.id, by: BY, ...data }, id);
          return { status: 200, html: decidedPage(decided) };
        }),
    );
    registered();
  });
}

interface Page {
  readonly status: number;
  readonly html: string;
}

async function answer(reply: FastifyReply, page: () => Promise<Page>): Promise<FastifyReply> {
  try {
    const { status, html } = await page();
    return reply.code(status).headers(HEADERS).send(html);
  } catch (error) {
    if (!isCoded(error)) throw error;
    const { status, what, remedy } = error;
    return reply
      .code(status)
      .headers(HEADERS)
      .send(shell('Approval', [`<p>${escapeMarkup(`${what} ${remedy}`)}</p>`]));
  }
}

function requestPage(view: ApprovalView, problem?: string): string {
  const { alias = 'a key', owner, route, tool, askedAt, until, arguments: given = '', state } = view;
  if (state !== 'waiting') return decidedPage(view);
  return shell('Approve this call?', [
    '<h1>Approve this call?</h1>',
    `<p>${escapeMarkup(alias)}${owner === undefined ? '' : ` of ${escapeMarkup(owner)}`} calls <strong>${escapeMarkup(tool)}</strong> of <strong>${escapeMarkup(route)}</strong>.</p>`,
    `<p>Asked ${escapeMarkup(askedAt)}; without a decision it is refused ${escapeMarkup(until)}.</p>`,
    `<pre>${escapeMarkup(given)}</pre>`,
    ...(problem === undefined ? [] : [`<p><strong>${escapeMarkup(problem)}</strong></p>`]),
    '<form method="post"><label>Why<input name="why" required maxlength="500" autocomplete="off"></label>',
    '<button name="verdict" value="approved">Approve</button><button name="verdict" value="denied">Deny</button></form>',
  ]);
}

function decidedPage(view: ApprovalView): string {
  const { route, tool, decision } = view;
  return shell('Approval', [
    `<h1>${escapeMarkup(route)} ${escapeMarkup(tool)}</h1>`,
    `<p>It does not wait any more: ${escapeMarkup(stateText(view))}.</p>`,
    ...(decision ? [`<p>Why: ${escapeMarkup(decision.why)}</p>`] : []),
  ]);
}

function shell(title: string, body: readonly string[]): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>${escapeMarkup(title)}</title><style>${STYLE}</style></head><body>${body.join('')}</body></html>`;
}
