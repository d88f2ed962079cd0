// What the image runs: commands for a memory store elsewhere, which HOLDFAST_MEMORY_URL names, and nothing else.
import { defineConfig } from 'holdfast';
import { memory } from 'holdfast/plugins/memory';

export default defineConfig({ plugins: [memory()] });
