// What the image runs: commands for a memory store elsewhere, which HOLDFAST_MEMORY_URL names, and nothing else.
import { defineConfig } from 'holdfast';
import { qdrant } from 'holdfast/plugins/qdrant';

export default defineConfig({ plugins: [qdrant()] });
