/** The policy of the console: nothing runs or is drawn that does not come from it as a file, and no text becomes markup. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "worker-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

/** The headers of every answer of the console: a browser may be led to any of them. */
export const ANSWER_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': CONTENT_SECURITY_POLICY,
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
};

const page = (title: string, body: string): string => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${title}</title>
<link rel="stylesheet" href="/login.css">
<main>
${body}
</main>
</html>
`;

/** Posts the code that stands behind the `#` of the link: so it is in no request line, log or referrer. */
export const LOGIN_PAGE: string = page(
  'Holdfast: log in',
  `<h1>Holdfast</h1>
<p>Run <code>holdfast console</code> on the machine of the instance, and open the link that it prints.</p>
<form>
<label for="code">Or type its code:</label>
<input id="code" name="code" autocomplete="off" spellcheck="false" maxlength="64" required autofocus>
<button>Log in</button>
</form>
<p id="problem" role="alert"></p>
<noscript><p>The console needs JavaScript.</p></noscript>
<script src="/login.js"></script>`,
);

export const LOGIN_SCRIPT = `'use strict';
const form = document.querySelector('form');
const field = document.querySelector('#code');
const problem = document.querySelector('#problem');
const goOn = () => {
  const next = URL.parse(new URLSearchParams(location.search).get('next') ?? '/', location.origin);
  location.replace(next?.origin === location.origin ? next : '/');
};
const login = async (code) => {
  problem.textContent = '';
  const response = await fetch('/api/login', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ code }),
  });
  if (response.ok) return goOn();
  const { error } = await response.json();
  problem.textContent = error.message + ' ' + error.action;
};
const attempt = (code) => login(code).catch(() => { problem.textContent = 'The instance does not answer.'; });
form.addEventListener('submit', (event) => {
  event.preventDefault();
  attempt(field.value.trim());
});
const attemptLink = () => {
  const code = location.hash.slice(1);
  if (!code) return;
  history.replaceState(null, '', location.pathname + location.search);
  attempt(code);
};
// A link that is opened in a window that shows this page already loads nothing anew.
addEventListener('hashchange', attemptLink);
if (location.hash) attemptLink();
// A browser sends the strict cookie to no page that a link of another site leads to, but to what that page asks for itself.
else fetch('/api/session').then(({ ok }) => { if (ok) goOn(); }).catch(() => {});
`;

export const LOGIN_STYLE = `:root { color-scheme: light dark }
body { font: 1rem/1.5 system-ui, sans-serif; margin: 3rem auto; max-width: 40rem; padding: 0 1rem }
input, button { font: inherit; padding: 0.25rem 0.5rem }
#problem { min-height: 1.5em; font-weight: 600 }
`;

/** What stands in the place of the pages where they were not built. */
export const NOT_BUILT_PAGE: string = page(
  'Holdfast',
  `<h1>Holdfast</h1>
<p>The pages of the console were not built. Run <code>node scripts/console.mjs</code> in the checkout, and load this page again.</p>
<ul>
<li><a href="/livez">/livez</a>: whether the process answers at all; for the liveness probe of a supervisor
<li><a href="/readyz">/readyz</a>: whether it takes requests; for the readiness probe of a load balancer
<li><a href="/healthz">/healthz</a>: how it is, and why; for monitoring that reads the field <code>status</code>, no probe
<li><a href="/metrics">/metrics</a>: numbers for Prometheus
<li><a href="/api/openapi.json">/api/openapi.json</a>: the questions that this console answers
</ul>`,
);
