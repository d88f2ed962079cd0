// What deploy/memory-snapshot.yaml runs: commands for a memory store elsewhere, which HOLDFAST_MEMORY_URL names, and
// nothing else. A store without a key needs no Secret.
import { existsSync } from 'node:fs';
import { defineConfig } from 'holdfast';
import { memory } from 'holdfast/plugins/memory';

const apiKeyFile = `${process.env.CREDENTIALS_DIRECTORY}/api_key`;

export default defineConfig({ plugins: [memory(existsSync(apiKeyFile) ? { apiKeyFile } : {})] });
