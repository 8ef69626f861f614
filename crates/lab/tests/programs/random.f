# Random reads next to random writes, as fast as each can.
set $size=64m

define file name=large,size=$size,prealloc,reuse

define process name=p
{
  thread name=reader
  {
    flowop read name=read,filename=large,iosize=8k,random
  }
  thread name=writer
  {
    flowop write name=write,filename=large,iosize=8k,random
  }
}
