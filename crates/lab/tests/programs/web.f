# A web server: ten pages are read, then the log is extended.
set $nfiles=1000
set $nthreads=100
set $pages=cvar(type=cvar-gamma,parameters=mean:16384;gamma:1.5)

define fileset name=site,size=$pages,entries=$nfiles,dirwidth=20,prealloc=100,readonly
define fileset name=logs,size=$pages,entries=1,dirwidth=20,prealloc

define process name=server
{
  thread name=worker,instances=$nthreads
  {
    flowop openfile name=open1,filesetname=site,fd=1
    flowop readwholefile name=read1,fd=1,iosize=1m
    flowop closefile name=close1,fd=1
    flowop openfile name=open2,filesetname=site,fd=1
    flowop readwholefile name=read2,fd=1,iosize=1m
    flowop closefile name=close2,fd=1
    flowop openfile name=open3,filesetname=site,fd=1
    flowop readwholefile name=read3,fd=1,iosize=1m
    flowop closefile name=close3,fd=1
    flowop openfile name=open4,filesetname=site,fd=1
    flowop readwholefile name=read4,fd=1,iosize=1m
    flowop closefile name=close4,fd=1
    flowop openfile name=open5,filesetname=site,fd=1
    flowop readwholefile name=read5,fd=1,iosize=1m
    flowop closefile name=close5,fd=1
    flowop openfile name=open6,filesetname=site,fd=1
    flowop readwholefile name=read6,fd=1,iosize=1m
    flowop closefile name=close6,fd=1
    flowop openfile name=open7,filesetname=site,fd=1
    flowop readwholefile name=read7,fd=1,iosize=1m
    flowop closefile name=close7,fd=1
    flowop openfile name=open8,filesetname=site,fd=1
    flowop readwholefile name=read8,fd=1,iosize=1m
    flowop closefile name=close8,fd=1
    flowop openfile name=open9,filesetname=site,fd=1
    flowop readwholefile name=read9,fd=1,iosize=1m
    flowop closefile name=close9,fd=1
    flowop openfile name=open10,filesetname=site,fd=1
    flowop readwholefile name=read10,fd=1,iosize=1m
    flowop closefile name=close10,fd=1
    flowop appendfilerand name=log,filesetname=logs,iosize=16k,fd=2
  }
}
