// The entry: styles first, then the one component that chooses the page.
import './styles.css';
import { mount } from 'svelte';
import App from './App.svelte';

const target = document.getElementById('app');
if (target !== null) mount(App, { target });
