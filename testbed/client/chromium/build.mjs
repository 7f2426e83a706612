/**
 * Bundles the drivers and their libraries into one file each, dist/load.cjs and dist/record.cjs: a
 * guest then opens one file instead of hundreds.
 */

import { readFile } from 'node:fs/promises';

import { build } from 'esbuild';

/** chrome-har reads its own package.json at run time; give it the content instead. */
const packageFile = {
  name: 'package-file',
  setup({ onLoad }) {
    onLoad({ filter: /chrome-har[\\/]index\.js$/ }, async ({ path }) => {
      const source = await readFile(path, 'utf8');
      const loader = 'const require = createRequire(import.meta.url);';
      if (!source.includes(loader)) {
        throw new Error(`${path} no longer reads its package.json as build.mjs expects`);
      }
      return { contents: source.replace(loader, ''), loader: 'js' };
    });
  },
};

await build({
  entryPoints: ['driver/load.mjs', 'driver/record.mjs'],
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
  plugins: [packageFile],
});
