// The image's HEALTHCHECK: whether the runtime of this container answers on its console (docs/health.md: `/livez`, for a
// restart remedies nothing else). Any answer below 500 is one, also 401 where the console asks for a token: no secret is sent,
// so no certificate is checked.
import { readFileSync } from 'node:fs';
import { get as overHttp } from 'node:http';
import { get as overHttps } from 'node:https';
import { join } from 'node:path';

const file = join(process.env.HOLDFAST_DATA_DIR ?? '.holdfast', 'runtime.json');
try {
  const { url } = JSON.parse(readFileSync(file, 'utf8')).surfaces.console;
  const get = url.startsWith('https:') ? overHttps : overHttp;
  get(`${url}/livez`, { timeout: 4_000, rejectUnauthorized: false }, ({ statusCode }) =>
    end(statusCode < 500, `/livez answers ${statusCode}`),
  )
    .on('timeout', () => end(false, '/livez does not answer within 4 s'))
    .on('error', ({ message }) => end(false, message));
} catch ({ message }) {
  end(false, `no console is known: ${message}`);
}

function end(alive, text) {
  console.log(text);
  process.exit(alive ? 0 : 1);
}
