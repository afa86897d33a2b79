// What a person does with the screen: palette, quick input, tree rows, editors, dialogs. Every step finds its element anew
// and repeats until its effect is seen, so that a slow machine or a redraw never breaks a story. Used by the stories.
import type { Locator, Page } from 'playwright-core';
import { until } from './wait.js';

/** A single attempt may be short: until() makes the next one. */
const ATTEMPT = { timeout: 5_000 };

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

export class Workbench {
  constructor(readonly page: Page) {}

  async open(url: string, folder: string): Promise<void> {
    await until('the workbench to load', async () => {
      await this.page.goto(`${url}/?folder=${encodeURIComponent(folder)}`, { timeout: 60_000 });
      await this.page.locator('.monaco-workbench').waitFor({ timeout: 30_000 });
      return true;
    });
    await this.ready();
  }

  async reload(): Promise<void> {
    await until('the workbench to load again', async () => {
      await this.page.reload({ timeout: 60_000 });
      await this.page.locator('.monaco-workbench').waitFor({ timeout: 30_000 });
      return true;
    });
    await this.ready();
  }

  /** The workbench takes keys, and Bough is active: its icon stands in the activity bar. */
  async ready(): Promise<void> {
    await until('Bough in the activity bar', () => this.boughIcon().isVisible());
  }

  private boughIcon(): Locator {
    return this.page.locator('.activitybar a.action-label[aria-label^="Bough"]').first();
  }

  async openBoughView(): Promise<void> {
    await until('the Branches view', async () => {
      if (await this.view().isVisible()) return true;
      // A badge lies over a part of the icon and takes the pointer; the click is the same.
      await this.boughIcon().click({ ...ATTEMPT, force: true });
      await this.view().waitFor({ state: 'visible', ...ATTEMPT });
      return true;
    });
  }

  view(): Locator {
    return this.page
      .locator('.sidebar .pane', { has: this.page.locator('.pane-header[aria-label^="Branches"]') })
      .first();
  }

  // Quick input: palette, picks and input boxes

  private quickInput(): Locator {
    return this.page.locator('.quick-input-widget');
  }

  private async quickInputOpen(): Promise<boolean> {
    return this.quickInput().isVisible();
  }

  private box(): Locator {
    return this.quickInput().locator('input.input').first();
  }

  /** Runs `Bough: …` (or any full title) from the command palette. */
  async command(title: string): Promise<void> {
    await until(`the command "${title}" in the palette`, async () => {
      if (!(await this.quickInputOpen())) {
        await this.page.keyboard.press('F1');
        await this.box().waitFor({ state: 'visible', ...ATTEMPT });
      }
      await this.box().fill(`>${title}`, ATTEMPT);
      const row = this.quickInput()
        .locator('.quick-input-list [role="option"], .quick-input-list .monaco-list-row')
        .filter({ has: this.page.locator(`.label-name`, { hasText: new RegExp(`^${escaped(title)}$`) }) })
        .first();
      await row.waitFor({ state: 'visible', ...ATTEMPT });
      await row.click(ATTEMPT);
      return true;
    });
  }

  /** Chooses a row of an open quick pick, by the beginning of its label. */
  async pick(title: string, label: string): Promise<void> {
    await until(`"${label}" to pick in "${title}"`, async () => {
      await this.quickInputTitled(title);
      const row = this.quickInput()
        .locator('.quick-input-list .monaco-list-row')
        .filter({ has: this.page.locator('.label-name', { hasText: new RegExp(`^${escaped(label)}`) }) })
        .first();
      await row.click(ATTEMPT);
      return true;
    });
  }

  /** Types into an open input box and accepts it; done when that box is gone. */
  async type(title: string, text: string): Promise<void> {
    await until(`the input "${title}"`, async () => {
      await this.quickInputTitled(title);
      await this.box().fill(text, ATTEMPT);
      await this.box().press('Enter', ATTEMPT);
      return true;
    });
    await until(`the input "${title}" to be taken`, async () => !(await this.titleIs(title)));
  }

  private async titleIs(title: string): Promise<boolean> {
    if (!(await this.quickInputOpen())) return false;
    return (await this.quickInput().locator('.quick-input-title').textContent(ATTEMPT)) === title;
  }

  private async quickInputTitled(title: string): Promise<void> {
    if (!(await this.titleIs(title))) throw new Error(`the quick input is not titled "${title}"`);
  }

  async quickInputShows(title: RegExp): Promise<boolean> {
    if (!(await this.quickInputOpen())) return false;
    return title.test((await this.quickInput().locator('.quick-input-title').textContent(ATTEMPT)) ?? '');
  }

  /** Chooses a row of the quick pick that is open, whatever its title. */
  async pickAny(label: string): Promise<void> {
    const title = (await this.quickInput().locator('.quick-input-title').textContent(ATTEMPT)) ?? '';
    await this.pick(title, label);
  }

  quickPickOpen(title: string): Promise<boolean> {
    return this.titleIs(title);
  }

  // The tree

  /** The row whose spoken label begins with these words. */
  row(label: string): Locator {
    return this.view()
      .locator(`.monaco-list-row[aria-label^=${JSON.stringify(label)}]`)
      .first();
  }

  /** Spoken labels of all rows on the screen. */
  async rows(): Promise<readonly string[]> {
    const rows = await this.view().locator('.monaco-list-row').all();
    const labels = await Promise.all(rows.map((row) => row.getAttribute('aria-label', ATTEMPT)));
    return labels.map((label) => label ?? '');
  }

  /** Waits for a row whose spoken label matches, and gives the label. */
  async rowLike(pattern: RegExp, patienceMs?: number): Promise<string> {
    return until(
      `a row like ${String(pattern)}`,
      async () => (await this.rows()).find((label) => pattern.test(label)),
      patienceMs,
    );
  }

  async expand(label: string): Promise<void> {
    await this.fold(label, 'true');
  }

  async collapse(label: string): Promise<void> {
    await this.fold(label, 'false');
  }

  private async fold(label: string, expanded: 'true' | 'false'): Promise<void> {
    const done = async () => (await this.row(label).getAttribute('aria-expanded', ATTEMPT)) === expanded;
    await until(`"${label}" to be ${expanded === 'true' ? 'unfolded' : 'folded'}`, async () => {
      if (await done()) return true;
      await this.row(label).locator('.monaco-tl-twistie').click(ATTEMPT);
      return until('the fold', done, 5_000).catch(() => false);
    });
  }

  /** Clicks a button that a row shows when the pointer is on it; repeats until `effect` is seen. */
  async rowButton(label: string, button: string, effect: () => Promise<boolean>): Promise<void> {
    await until(`"${button}" on the row "${label}" to work`, async () => {
      if (await effect()) return true;
      const row = this.row(label);
      await row.hover(ATTEMPT);
      await row.locator(`a.action-label[aria-label^=${JSON.stringify(button)}]`).click(ATTEMPT);
      return until('its effect', effect, 10_000).catch(() => false);
    });
  }

  /** Scrolls the tree until a row matches; only rows in view are in the page. */
  async scrollToRow(pattern: RegExp): Promise<void> {
    await until(`a row like ${String(pattern)} after scrolling`, async () => {
      if ((await this.rows()).some((label) => pattern.test(label))) return true;
      await this.view().locator('.monaco-list').first().hover(ATTEMPT);
      await this.page.mouse.wheel(0, 2000);
      return false;
    });
  }

  /** Chooses an entry of a row's menu; repeats until `effect` is seen. */
  async rowMenu(label: string, entry: string, effect: () => Promise<boolean>): Promise<void> {
    await until(`"${entry}" in the menu of the row "${label}" to work`, async () => {
      if (await effect()) return true;
      const menu = this.page.locator('.monaco-menu-container .monaco-menu');
      // One that an earlier attempt left open would catch the click.
      if (await menu.isVisible()) {
        await this.page.keyboard.press('Escape');
        await menu.waitFor({ state: 'hidden', ...ATTEMPT });
      }
      await this.row(label).click({ button: 'right', ...ATTEMPT });
      const item = menu.locator('.action-item', {
        has: this.page.locator(`.action-label[aria-label=${JSON.stringify(entry)}]`),
      });
      await item.hover(ATTEMPT);
      await until(
        'the entry to be chosen',
        async () => /focused/.test((await item.getAttribute('class')) ?? ''),
        3_000,
      );
      await this.page.keyboard.press('Enter');
      await menu.waitFor({ state: 'hidden', ...ATTEMPT });
      return until('its effect', effect, 15_000).catch(() => false);
    });
  }

  /** Ticks a row's box, or takes the tick away; repeats until `effect` is seen. */
  async tickRow(label: string, effect: () => Promise<boolean>): Promise<void> {
    await until(`the box of the row "${label}" to work`, async () => {
      if (await effect()) return true;
      await this.row(label).locator('.custom-view-tree-node-item-checkbox').click(ATTEMPT);
      return until('its effect', effect, 10_000).catch(() => false);
    });
  }

  async clickRow(label: string, effect: () => Promise<boolean>): Promise<void> {
    await until(`a click on the row "${label}" to work`, async () => {
      if (await effect()) return true;
      await this.row(label).locator('.monaco-icon-label').first().click(ATTEMPT);
      return until('its effect', effect, 10_000).catch(() => false);
    });
  }

  // Editors

  async tab(title: RegExp): Promise<string | undefined> {
    const tabs = await this.page.locator('.tabs-container .tab').all();
    const labels = await Promise.all(tabs.map((tab) => tab.getAttribute('aria-label', ATTEMPT)));
    return labels.find((label): label is string => label !== null && title.test(label));
  }

  /** Text of the editors on the screen, line by line (only what is in view is in the page). */
  async editorText(): Promise<string> {
    const texts = await this.page.locator('.editor-instance .view-lines').all();
    const parts = await Promise.all(
      texts.map(async (lines) => {
        const rows = await lines.locator('.view-line').all();
        const placed = await Promise.all(
          rows.map(async (row) => ({
            top: Number.parseFloat(await row.evaluate((element) => (element as HTMLElement).style.top || '0')),
            text: (await row.textContent(ATTEMPT)) ?? '',
          })),
        );
        return placed
          .sort((a, b) => a.top - b.top)
          .map(({ text }) => text.replaceAll('\u00a0', ' '))
          .join('\n');
      }),
    );
    return parts.join('\n');
  }

  /** Opens a file of the workspace by its path ("Go to File"). */
  async openFile(file: string, tabTitle: RegExp): Promise<void> {
    await until(`${file} in an editor`, async () => {
      if (await this.tab(tabTitle)) return true;
      if (!(await this.quickInputOpen())) {
        await this.page.keyboard.press('Control+P');
        await this.box().waitFor({ state: 'visible', ...ATTEMPT });
      }
      await this.box().fill(file, ATTEMPT);
      await this.quickInput()
        .locator('.quick-input-list .monaco-list-row')
        .first()
        .waitFor({ state: 'visible', ...ATTEMPT });
      await this.page.keyboard.press('Enter');
      return until('its tab', () => this.tab(tabTitle), 10_000).then((label) => label !== '');
    });
  }

  /** Puts the cursor at the end of the text in the only editor on the screen. */
  async cursorToEnd(): Promise<void> {
    await until('the cursor at the end of the text', async () => {
      const lines = this.page.locator('.editor-instance .view-lines').first();
      await lines.click(ATTEMPT);
      await this.page.keyboard.press('Control+End');
      return true;
    });
  }

  /** Replaces the first line of the only editor on the screen; only a draft until it is saved. */
  async replaceFirstLine(text: string): Promise<void> {
    await this.page.locator('.editor-instance .view-lines').first().click(ATTEMPT);
    await this.page.keyboard.press('Control+Home');
    await this.page.keyboard.press('Shift+End');
    await this.page.keyboard.type(text);
  }

  /** Puts the cursor into a line (from 1) of the editor in front; in a diff, of its right side. */
  async goToLine(line: number): Promise<void> {
    await until(`the cursor in line ${line}`, async () => {
      await this.closePopups();
      await this.page.keyboard.press('Control+1');
      await this.page.keyboard.press('Control+G');
      await this.box().waitFor({ state: 'visible', ...ATTEMPT });
      await this.box().fill(`:${line}`, ATTEMPT);
      await this.page.keyboard.press('Enter');
      return until('the status bar to say so', () => this.statusSays(new RegExp(`^Ln ${line},`)), 5_000);
    });
  }

  /** An entry of the status bar has a text that matches. */
  async statusSays(text: RegExp): Promise<boolean> {
    const entries = await this.page.locator('.statusbar-item').allTextContents();
    return entries.some((entry) => text.test(entry.trim()));
  }

  private async closePopups(): Promise<void> {
    const menu = this.page.locator('.action-widget');
    if (!(await this.quickInputOpen()) && !(await menu.isVisible())) return;
    await this.page.keyboard.press('Escape');
    await menu.waitFor({ state: 'hidden', ...ATTEMPT });
    await this.quickInput().waitFor({ state: 'hidden', ...ATTEMPT });
  }

  /** Chooses an entry of the light bulb's menu in a line; repeats until its effect. */
  async lightBulb(line: number, entry: string, effect: () => boolean): Promise<void> {
    await until(`"${entry}" in the light bulb of line ${line} to work`, async () => {
      if (effect()) return true;
      await this.goToLine(line);
      await this.page.keyboard.press('Control+.');
      const row = this.page.locator('.action-widget .monaco-list-row', { hasText: entry }).first();
      await row.waitFor({ state: 'visible', ...ATTEMPT });
      // What lies over a fresh menu, so that no click of before chooses from it, goes with the first move of the pointer.
      await this.page.mouse.move(700, 15);
      await this.page.mouse.move(710, 20);
      await row.click(ATTEMPT);
      return until('its effect', effect, 15_000).catch(() => false);
    });
  }

  /** Clicks a CodeLens; the last one on the screen with this title; repeats until its effect. */
  async codeLens(line: number, title: string, effect: () => boolean): Promise<void> {
    await until(`the CodeLens "${title}" of line ${line} to work`, async () => {
      if (effect()) return true;
      await this.goToLine(line);
      await this.page.locator('.codelens-decoration a', { hasText: title }).last().click(ATTEMPT);
      return until('its effect', effect, 15_000).catch(() => false);
    });
  }

  /** Presses a button of the editor's title; repeats until its effect. */
  async editorButton(label: string, effect: () => Promise<boolean>): Promise<void> {
    await until(`"${label}" in the editor's title to work`, async () => {
      if (await effect()) return true;
      await this.page
        .locator(`.editor-actions a.action-label[aria-label^=${JSON.stringify(label)}]`)
        .first()
        .click(ATTEMPT);
      return until('its effect', effect, 10_000).catch(() => false);
    });
  }

  /** How many places the gutter of the editor in front marks on the screen: changed, added, deleted. */
  async gutterMarks(): Promise<number> {
    return this.page.locator('.editor-instance .margin .dirty-diff-glyph').count();
  }

  /** Presses a key until its effect is seen. */
  async press(key: string, what: string, effect: () => Promise<boolean>): Promise<void> {
    await until(what, async () => {
      if (await effect()) return true;
      await this.page.keyboard.press(key);
      return until('its effect', effect, 5_000).catch(() => false);
    });
  }

  // Dialogs and notifications

  dialog(): Locator {
    return this.page.locator('.monaco-dialog-box');
  }

  /** Answers a modal dialog whose text matches. */
  async answer(text: RegExp, button: string): Promise<string> {
    const said = await until(`a dialog like ${String(text)}`, async () => {
      const shown = await this.dialog().textContent(ATTEMPT);
      return shown !== null && text.test(shown) ? shown : undefined;
    });
    await until(`"${button}" to close the dialog`, async () => {
      if (!(await this.dialog().isVisible())) return true;
      await this.dialog()
        .locator('.dialog-buttons a.monaco-button, .dialog-buttons .monaco-text-button', { hasText: button })
        .first()
        .click(ATTEMPT);
      return until('the dialog to close', async () => !(await this.dialog().isVisible()), 5_000).catch(() => false);
    });
    return said;
  }

  /** Texts of the notifications on the screen. */
  async notifications(): Promise<readonly string[]> {
    return this.page.locator('.notification-list-item-message').allTextContents();
  }

  /** Closes what the editor itself says and no story is about. */
  async closeToasts(text: RegExp): Promise<void> {
    await until('the toast to be closed', async () => {
      const toast = this.page.locator('.notification-toast', { hasText: text }).first();
      if (!(await toast.isVisible())) return true;
      await toast.hover(ATTEMPT);
      await toast.locator('a.codicon-notifications-clear').click(ATTEMPT);
      return false;
    });
  }

  // Terminals

  /** What the terminal on the screen shows. */
  async terminalText(): Promise<string> {
    const rows = await this.page.locator('.terminal-wrapper.active .xterm-rows > div').allTextContents();
    return rows
      .map((row) => row.replaceAll('\u00a0', ' ').trimEnd())
      .join('\n')
      .trim();
  }

  /** Names of the terminals that are open, also when only one is. */
  async terminalNames(): Promise<readonly string[]> {
    const tabs = await this.page.locator('.terminal-tabs-entry').allTextContents();
    if (tabs.length > 0) return tabs.map((name) => name.trim());
    const single = await this.page.locator('.single-terminal-tab').allTextContents();
    return single.map((name) => name.trim());
  }

  /** Types a line into the terminal on the screen until its effect is seen; the line must be safe to repeat. */
  async typeInTerminal(line: string, what: string, effect: () => Promise<boolean>): Promise<void> {
    await until(`${what} after "${line}" in the terminal`, async () => {
      if (await effect()) return true;
      await this.sendLine(line);
      return until('its effect', effect, 20_000).catch(() => false);
    });
  }

  private async sendLine(line: string): Promise<void> {
    await until('the terminal to take keys', async () => {
      const input = this.page.locator('.terminal-wrapper.active textarea.xterm-helper-textarea').first();
      await input.focus(ATTEMPT);
      return input.evaluate((element) => document.activeElement === element);
    });
    await this.page.keyboard.type(line, { delay: 10 });
    await this.page.keyboard.press('Enter');
  }

  /** Drags the sidebar's edge until whole rows can be read. */
  async widenSidebar(width: number): Promise<void> {
    await until('a wide sidebar', async () => {
      const box = await this.page.locator('.part.sidebar').boundingBox(ATTEMPT);
      if (box === null || box.width >= width - 5) return box !== null;
      const [x, y] = [box.x + box.width, box.y + box.height / 2];
      await this.page.mouse.move(x, y);
      await this.page.mouse.down();
      await this.page.mouse.move(box.x + width, y, { steps: 5 });
      await this.page.mouse.up();
      return false;
    });
    // The edge is lit while the pointer is on it.
    await this.page.mouse.move(700, 15);
    const lit = this.page.locator('.monaco-sash.hover, .monaco-sash.active');
    await until('the edge to be dark', async () => (await lit.count()) === 0);
  }

  async screenshot(file: string): Promise<void> {
    await this.page.screenshot({ path: file, animations: 'disabled' });
  }
}
