// Single keys act on the page unless somebody is writing.

export function isTyping(event: Event): boolean {
  const at = event.target;
  return at instanceof HTMLElement && (at.matches('input, textarea, select') || at.isContentEditable);
}
