# The older dialect: variables are defined, sets state whether they are cached.
set $cached=false
set $rate=10
set $nfiles=20
set $total=$nfiles * $rate
eventgen rate = $rate
define randvar name=$size, type=gamma, min=1k, mean=5632, gamma=1500
define randvar name=$table, type=tabular, min=8k, round=1k, mean=20k, randtable =
{{85,   8k,   8k},
 {15,   8k,  64k}
}
define randvar name=$flat, type=uniform, min=512, mean=4k
define fileset name=files,path=/tmp,size=$size,entries=$total,dirwidth=20,prealloc=60,cached=$cached
define process name=client,instances=1
{
  thread name=user,memsize=10m,instances=4
  {
    flowop openfile name=open,filesetname=files,fd=1
    flowop readwholefile name=read,fd=1,iosize=$table
    flowop appendfile name=append,fd=1,iosize=$flat
    flowop closefile name=close,fd=1
    flowop eventlimit name=pace
  }
}
psrun -5 30
