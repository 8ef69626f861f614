// Certificates: a page shows what its kind of certificate has, and leaves out the rest.
import test from 'node:test';
import assert from 'node:assert/strict';
import { isAll, isCertificates, unused } from '../../src/lib/certificates.ts';

const AT = '/configuration/certificates';
const node = (path, source) => ({ path, properties: [{ name: 'source', value: source }] });

test('a certificate has no settings of another kind', () => {
  assert.deepEqual(unused(node(AT, undefined)), []);
  const supplied = unused(node(`${AT}/office`, 'supplied'));
  assert.ok(supplied.includes('domains') && supplied.includes('renews') && !supplied.includes('key'));
  const acme = unused(node(`${AT}/public`, 'acme'));
  assert.ok(acme.includes('key') && !acme.includes('domains') && !acme.includes('renews'));
  const own = unused(node(`${AT}/self-signed`, 'self-signed'));
  assert.ok(own.includes('key') && own.includes('domains') && own.includes('authority'));
});

test('only its own paths are its', () => {
  assert.ok(isAll(AT) && isAll(`${AT}/`) && isCertificates(AT) && isCertificates(`${AT}/x`));
  assert.ok(!isCertificates('/configuration/certificates2') && !isAll(`${AT}/x`));
});
