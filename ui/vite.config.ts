// How the interface is built: hashed files below /assets, nothing inlined (the content security
// policy allows only 'self'), no source maps in the embedded bundle.
import { defineConfig } from 'vite';
import { svelte } from '@sveltejs/vite-plugin-svelte';

export default defineConfig({
  plugins: [svelte()],
  base: '/',
  build: {
    target: 'es2022',
    outDir: 'dist',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
  },
  server: {
    port: 26000,
    strictPort: true,
    // `npm run mock` answers the API during development.
    proxy: { '/api': 'http://127.0.0.1:26001' },
  },
});
