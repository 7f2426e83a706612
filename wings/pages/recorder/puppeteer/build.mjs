/**
 * Bundles the recorder's driver and its libraries into one file, dist/record.cjs: a recording runs
 * it from a folder of its own, as a user who may not see the libraries.
 */

import { build } from 'esbuild';

await build({
  entryPoints: ['record.mjs'],
  outdir: 'dist',
  outExtension: { '.js': '.cjs' },
  bundle: true,
  platform: 'node',
  target: 'node18',
  format: 'cjs',
  minifyWhitespace: true,
  minifySyntax: true,
  legalComments: 'none',
  logLevel: 'warning',
  // Puppeteer's other protocol; loaded on demand, and never demanded here.
  external: ['chromium-bidi', 'chromium-bidi/*'],
});
